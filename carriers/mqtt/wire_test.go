package mqtt

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// wired gives a wire, the far end of its connection and its ends.
func wired(t *testing.T, timeout time.Duration) (w *wire, far net.Conn, ended <-chan error) {
	t.Helper()
	near, far := net.Pipe()
	ends := make(chan error, 2)
	w = newWire(near, timeout, func(err error) { ends <- err })
	t.Cleanup(func() {
		_ = w.Close()
		_ = far.Close()
	})
	return w, far, ends
}

func received(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not told")
		return nil
	}
}

func TestWhatIsWrittenWhileTheNetworkIsBusyGoesOutTogetherInOrder(t *testing.T) {
	w, far, _ := wired(t, time.Minute)
	var want []byte
	for i := range 100 {
		packet := []byte{typePublish << 4, 1, byte(i)}
		want = append(want, packet...)
		if _, err := w.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	reads, got := 0, []byte(nil)
	for chunk := make([]byte, len(want)); len(got) < len(want); reads++ {
		n, err := far.Read(chunk)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, chunk[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	// The first left alone, and perhaps a few behind it; a pipe takes one write a
	// read.
	if reads > 10 {
		t.Fatalf("%d writes for 100 packets", reads)
	}
}

func TestADisconnectLeavesBeforeTheConnectionIsClosed(t *testing.T) {
	w, far, _ := wired(t, time.Minute)
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	for _, packet := range [][]byte{{typePublish << 4, 0}, {typeDisconnect << 4, 0}} {
		if _, err := w.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if all := <-got; !bytes.Equal(all, []byte{typePublish << 4, 0, typeDisconnect << 4, 0}) {
		t.Fatalf("the far end got %v", all)
	}
}

func TestAPeerThatTakesNothingEndsTheConnection(t *testing.T) {
	w, _, ended := wired(t, 50*time.Millisecond)
	var err error
	for range 3 {
		// More than may wait: the last one waits for room, and then has its error.
		_, err = w.Write(bytes.Repeat([]byte{typePublish << 4}, writeBuffer))
	}
	if err == nil {
		t.Error("a write to a peer that takes nothing has no error")
	}
	if err := received(t, ended); !isTimeout(err) {
		t.Errorf("ended with %v, want a timeout", err)
	}
	if _, err := w.Write([]byte{typePublish << 4, 0}); err == nil {
		t.Error("a write behind the end has no error")
	}
}

func TestClosingWaitsForNoPeer(t *testing.T) {
	w, _, ended := wired(t, time.Minute)
	if _, err := w.Write([]byte{typePublish << 4, 0}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_ = w.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
	if err := received(t, ended); !errors.Is(err, errDisconnects) {
		t.Errorf("ended with %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the end was told twice, the second time with %v", err)
	default:
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
