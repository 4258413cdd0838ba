package main

import (
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
)

func TestACarrierWithoutAURLFollowsItsEmbeddedBroker(t *testing.T) {
	const set = "carriers: {nats: {type: nats}, mqtt: {type: mqtt}, other: {type: nats, url: \"nats://127.0.0.1:4222\"}}\n"
	cases := []struct {
		name        string
		file        string
		environ     []string
		nats, mqtt  string
		otherStands bool
	}{
		{name: "nothing said", nats: "nats://127.0.0.1:4222", mqtt: "tcp://127.0.0.1:1883"},
		{
			name: "moved by the environment", environ: []string{"GATEWAY_EMBEDDED__NATS__LISTEN=127.0.0.1:5222", "GATEWAY_EMBEDDED__MQTT__LISTEN=[::1]:2883"},
			nats: "nats://127.0.0.1:5222", mqtt: "tcp://[::1]:2883",
		},
		{
			name: "moved by the file", file: set + "embedded: {nats: {listen: \"localhost:0\"}, mqtt: {listen: \"127.0.0.2:2883\"}}\n",
			nats: "nats://localhost:0", mqtt: "tcp://127.0.0.2:2883", otherStands: true,
		},
		{
			name: "a url that is set", environ: []string{"GATEWAY_EMBEDDED__NATS__LISTEN=127.0.0.1:5222", "GATEWAY_CARRIERS__NATS__URL=nats://127.0.0.1:4222"},
			nats: "nats://127.0.0.1:4222", mqtt: "tcp://127.0.0.1:1883",
		},
		{
			name: "brokers that are not enabled", file: "embedded: {nats: {enabled: false, listen: \"127.0.0.1:5222\"}, mqtt: {enabled: false, listen: \"127.0.0.1:2883\"}}\n",
			nats: "nats://127.0.0.1:4222", mqtt: "tcp://127.0.0.1:1883",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := mustLoad(t, &loading{file: tc.file, environ: tc.environ})
			if got := carrier[nats.Config](t, c, "nats").URL; got != tc.nats {
				t.Errorf("nats is at %s, want %s", got, tc.nats)
			}
			if got := carrier[mqtt.Config](t, c, "mqtt").URL; got != tc.mqtt {
				t.Errorf("mqtt is at %s, want %s", got, tc.mqtt)
			}
			if tc.otherStands && carrier[nats.Config](t, c, "other").URL != "nats://127.0.0.1:4222" {
				t.Error("a url that is set moved along")
			}
		})
	}
}

func TestAnEmbeddedBrokerIsReachedByPlainTCPAlone(t *testing.T) {
	cases := []struct{ typ, url, key string }{
		{"mqtt", "ssl://127.0.0.1:1883", "embedded.mqtt"},
		{"mqtt", "tls://localhost:1883", "embedded.mqtt"},
		{"mqtt", "mqtts://127.0.0.1:1883", "embedded.mqtt"},
		{"mqtt", "ws://127.0.0.1:1883/mqtt?token=hunter2", "embedded.mqtt"},
		{"mqtt", "wss://user:hunter2@[::1]:1883", "embedded.mqtt"},
		{"nats", "tls://127.0.0.1:4222", "embedded.nats"},
		{"nats", "ws://127.0.0.1:4222", "embedded.nats"},
		{"nats", "wss://127.0.0.1:4222", "embedded.nats"},
		{"mqtt", "ssl://127.0.0.1:8883", ""},
		{"mqtt", "ssl://broker:1883", ""},
		{"mqtt", "mqtt://127.0.0.1:1883", ""},
		{"nats", "tls://127.0.0.1:4223", ""},
	}
	for _, tc := range cases {
		t.Run(tc.url, func(t *testing.T) {
			file := "carriers: {c: {type: " + tc.typ + ", url: \"" + tc.url + "\"}}\n"
			_, err := (&loading{file: file}).load(t)
			if tc.key == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "carriers.c.url: ") || !strings.Contains(err.Error(), tc.key+", which speaks plain TCP") {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
			if _, err := (&loading{file: file + "embedded: {nats: {enabled: false}, mqtt: {enabled: false}}\n"}).load(t); err != nil {
				t.Errorf("with the brokers off: %v", err)
			}
		})
	}
}

func TestPointsAtKnowsTheEmbeddedBroker(t *testing.T) {
	cases := []struct {
		url, listen string
		want        bool
	}{
		{"nats://127.0.0.1:4222", "127.0.0.1:4222", true},
		{"nats://localhost:4222", "127.0.0.1:4222", true},
		{"tcp://[::1]:1883", "0.0.0.0:1883", true},
		{"tcp://127.0.0.1:1883", ":1883", true},
		{"tcp://127.0.0.1:0", "127.0.0.1:0", true},
		{"127.0.0.1:4222", "127.0.0.1:4222", true},
		{"nats://127.0.0.1:4223", "127.0.0.1:4222", false},
		{"nats://broker:4222", "127.0.0.1:4222", false},
		{"nats://10.0.0.1:4222", "0.0.0.0:4222", false},
		{"nats://127.0.0.1", "127.0.0.1:4222", false},
		{"nats://a:4222,nats://127.0.0.1:4222", "127.0.0.1:4222", false},
		{"nats://127.0.0.1:4222", "nowhere", false},
		{"mqtt://127.0.0.1:1883", "127.0.0.1:1883", true},
		{"ssl://127.0.0.1:1883", "127.0.0.1:1883", false},
		{"mqtts://127.0.0.1:1883", "127.0.0.1:1883", false},
		{"ws://localhost:1883", "127.0.0.1:1883", false},
		{"wss://[::1]:1883", ":1883", false},
		{"tls://127.0.0.1:4222", "127.0.0.1:4222", false},
	}
	for _, c := range cases {
		if got := pointsAt(c.url, c.listen); got != c.want {
			t.Errorf("pointsAt(%s, %s) = %v", c.url, c.listen, got)
		}
	}
}
