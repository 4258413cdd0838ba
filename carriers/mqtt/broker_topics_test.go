package mqtt

import (
	"slices"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/mochi-mqtt/server/v2/packets"
)

func TestOtherTopicsAreTheBrokersOwnBusiness(t *testing.T) {
	in := committing()
	b, _ := embedded(t, in)
	watcher, device := watching(t, b), dialDevice(t, b, "device")
	topics := []string{"other/topic", "compozy/network", "compozy/network/v1/ws/lab/broadcast", "compozy/network/v00"}
	for _, topic := range topics {
		device.publish(topic, []byte(topic), 1)
	}
	until(t, "they are shown", func() bool { return slices.Equal(watcher.payloads(), topics) })
	if n := len(in.all()); n != 0 {
		t.Errorf("%d were offered", n)
	}
}

func TestADeviceCannotSpeakPastTheGatewayBelowThePrefix(t *testing.T) {
	for _, topic := range wrongTopics() {
		t.Run(topic, func(t *testing.T) {
			in := settling(refusal)
			b, _ := embedded(t, in)
			watcher, device := watching(t, b), dialDevice(t, b, "device")
			device.publish(topic, []byte("x"), 1)
			if o := in.await(t, 1); o.Address != nil || o.BadAddress == "" || o.Arrival != core.ArrivalNative {
				t.Errorf("offered with the address %+v, bad %q, %s", o.Address, o.BadAddress, o.Arrival)
			}
			until(t, "the device is answered", func() bool { return settledOf(device, "x") })
			never(t, 30*time.Millisecond, "the message was shown", func() bool { return len(watcher.received()) > 0 })
		})
	}
}

func TestTheLongerOfTwoNestedPrefixesCounts(t *testing.T) {
	b := newBroker(t)
	outer, inner := committing(), committing()
	for _, c := range []struct {
		prefix string
		in     *recorder
	}{{"net", outer}, {"net/lab", inner}, {"net/l", committing()}} {
		cfg := testConfig("")
		cfg.TopicPrefix = c.prefix
		carrier, err := New(cfg, testHost("mqtt"), WithBroker(b))
		if err != nil {
			t.Fatal(err)
		}
		start(t, carrier, c.in)
		ready(t, carrier)
	}
	device := dialDevice(t, b, "device")
	device.publish("net/ws/c/broadcast", []byte("outer"), 1)
	device.publish("net/lab/ws/c/broadcast", []byte("inner"), 1)
	until(t, "both are taken, each by its own carrier", func() bool {
		return slices.Equal(outer.payloads(), []string{"outer"}) && slices.Equal(inner.payloads(), []string{"inner"})
	})
}

func TestNothingIsRetainedOnOurAddresses(t *testing.T) {
	b, _ := embedded(t, committing())
	device := dialDevice(t, b, "device")
	device.send(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: 1, Retain: true}, TopicName: broadcast, Payload: []byte("x"),
	})
	until(t, "the device is answered", func() bool { return settledOf(device, "x") })
	watcher := watching(t, b)
	never(t, 50*time.Millisecond, "a message was retained", func() bool { return len(watcher.received()) > 0 })
}
