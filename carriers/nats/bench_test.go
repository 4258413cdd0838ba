package nats

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// BenchmarkSend publishes with the declared window into the embedded server, which
// syncs each message; nothing is received meanwhile.
func BenchmarkSend(b *testing.B) {
	s := embedded(b, b.TempDir(), &logs{})
	cfg := DefaultConfig()
	cfg.URL = s.ClientURL()
	r := ready(b, cfg, &intake{closed: make(chan struct{})})
	payload := strings.Repeat("x", 512)
	window := make(chan struct{}, streamWindow)
	var open sync.WaitGroup
	b.ResetTimer()
	for i := range b.N {
		window <- struct{}{}
		open.Add(1)
		r.Send(b.Context(), message(fmt.Sprint(i), payload), func(_ core.Ack, err error) {
			if err != nil {
				b.Error(err)
			}
			<-window
			open.Done()
		})
	}
	open.Wait()
}

// BenchmarkReceive offers and acknowledges what stands in the stream.
func BenchmarkReceive(b *testing.B) {
	broker := newBroker(b)
	nc := broker.client()
	js := stream(b, nc)
	in := committing()
	first := ready(b, testConfig(broker), in)
	first.stop()
	payload := []byte(strings.Repeat("x", 512))
	for i := range b.N {
		if err := nc.Publish(labBroadcast, payload); err != nil {
			b.Fatal(err)
		}
		if i%1000 == 0 {
			_ = nc.Flush()
		}
	}
	eventually(b, "all are stored", func() bool {
		s, err := js.Stream(within(b), "COMPOZY_NETWORK_V0")
		return err == nil && s.CachedInfo().State.Msgs == uint64(b.N)
	})
	b.ResetTimer()
	ready(b, testConfig(broker), in)
	eventually(b, "all are offered", func() bool { return in.total() >= b.N })
}
