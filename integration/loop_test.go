//go:build brokers

package integration

import (
	"maps"
	"testing"
	"time"
)

// idleWithin is how soon everything must be quiet after one envelope.
const idleWithin = 5 * time.Second

// TestTwoGatewaysOnOneServerMakeNoLoop joins two MQTT brokers by two gateways on
// one nats-server, and sends from every side.
func TestTwoGatewaysOnOneServerMakeNoLoop(t *testing.T) {
	t.Parallel()
	server := newNATSServer(t)
	server.start(t)
	first := brokers{nats: server, mqtt: newMosquitto(t)}
	second := brokers{nats: server, mqtt: newMosquitto(t)}
	first.mqtt.start(t)
	second.mqtt.start(t)
	a := newGateway(t, first, object{"name": "a"})
	b := newGateway(t, second, object{"name": "b"})
	a.start(t)
	b.start(t)
	client := connectNode(t, server.url())
	client.subscribe(t, subjectPrefix+">")
	left := subscribe(t, first.mqtt.port, "", topicPrefix+"#")
	right := subscribe(t, second.mqtt.port, "", topicPrefix+"#")

	publish(t, first.mqtt.port, broadcastTopic, say("from-left", "lea", "hello").String())
	publish(t, second.mqtt.port, broadcastTopic, say("from-right", "rob", "hello").String())
	client.store(t, broadcastSubject, say("from-middle", "mia", "hello").String())
	publish(t, first.mqtt.port, ingressTopic, say("into-left", "lea", "hello").String())
	everybody := map[string]*arrivals{"left": &left.arrivals, "right": &right.arrivals, "middle": &client.arrivals}
	all := []string{"from-left", "from-right", "from-middle", "into-left"}
	for who, got := range everybody {
		got.awaitIDs(t, idleWithin, who, all...)
	}
	checkIdle(t, a, b)
	for who, got := range everybody {
		for id, n := range got.count() {
			want := 1
			if who == "left" && id == "into-left" {
				want = 2 // on ingress as the sender's own, then on broadcast
			}
			if n != want {
				t.Errorf("%s got %s %d times, want %d", who, id, n, want)
			}
		}
	}
	for _, g := range []*gateway{a, b} {
		checkAcked(t, g, arriveWithin, all)
		for _, id := range all {
			if n := len(g.inspect(t, id).Deliveries); n > 2 {
				t.Errorf("gateway %s made %d deliveries of %s", g.name, n, id)
			}
		}
	}
}

// TestTwoGatewaysBetweenTheSameBrokersMakeNoLoop is a ring: both gateways join
// the same two brokers.
func TestTwoGatewaysBetweenTheSameBrokersMakeNoLoop(t *testing.T) {
	t.Parallel()
	at := foreignBrokers(t)
	a := newGateway(t, at, object{"name": "a"})
	b := newGateway(t, at, object{"name": "b"})
	a.start(t)
	b.start(t)
	client := connectNode(t, at.natsURL())
	client.subscribe(t, broadcastSubject)
	device := subscribe(t, at.mqttPort(), "", broadcastTopic)

	publish(t, at.mqttPort(), broadcastTopic, say("from-mqtt", "lea", "hello").String())
	client.store(t, broadcastSubject, say("from-nats", "mia", "hello").String())
	client.awaitIDs(t, idleWithin, "the NATS client", "from-mqtt", "from-nats")
	device.awaitIDs(t, idleWithin, "the device", "from-mqtt", "from-nats")
	checkIdle(t, a, b)
	// Each of the two gateways may carry a message across once.
	for who, got := range map[string]map[string]int{"the NATS client": client.count(), "the device": device.count()} {
		for id, n := range got {
			if n > 2 {
				t.Errorf("%s got %s %d times", who, id, n)
			}
		}
	}
	for _, g := range []*gateway{a, b} {
		for _, id := range []string{"from-mqtt", "from-nats"} {
			if n := len(g.inspect(t, id).Deliveries); n > 1 {
				t.Errorf("gateway %s made %d deliveries of %s", g.name, n, id)
			}
		}
	}
}

// checkIdle wants the gateways to become quiet, and to stay so.
func checkIdle(t *testing.T, gateways ...*gateway) {
	t.Helper()
	busy := func() []counters {
		var all []counters
		for _, g := range gateways {
			all = append(all, g.counters(t, "gateway_offers_total"), g.counters(t, "gateway_deliveries_total"), g.counters(t, "gateway_pending_deliveries"))
		}
		return all
	}
	before, since := busy(), time.Now()
	eventually(t, idleWithin, "all is quiet for a second", func() bool {
		now := busy()
		for i := range now {
			if !maps.Equal(now[i], before[i]) {
				before, since = now, time.Now()
				return false
			}
		}
		return time.Since(since) > time.Second
	})
	throughout(t, 2*time.Second, "all stays quiet", func() bool {
		now := busy()
		for i := range now {
			if !maps.Equal(now[i], before[i]) {
				return false
			}
		}
		return true
	})
}
