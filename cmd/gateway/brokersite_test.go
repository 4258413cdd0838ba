package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestABrokerThatNobodyPointsAtIsWarnedOfWhereSomebodyMayCountOnIt(t *testing.T) {
	cases := []struct {
		name, file string
		environ    []string
		wanted     bool
		level      string
	}{
		{name: "the defaults", wanted: true},
		{name: "moved, the url follows", environ: []string{"GATEWAY_EMBEDDED__NATS__LISTEN=127.0.0.1:5222"}, wanted: true},
		{
			name:    "moved, the url stays",
			environ: []string{"GATEWAY_EMBEDDED__NATS__LISTEN=127.0.0.1:5222", "GATEWAY_CARRIERS__NATS__URL=nats://u:hunter2@127.0.0.1:4222"},
			level:   "WARN",
		},
		{name: "a carrier of another broker", file: "carriers: {nats: {type: nats, url: \"nats://broker:4222\"}}\n", level: "WARN"},
		{name: "no carrier, but the broker is named", file: "embedded: {nats: {enabled: true}}\ncarriers: {web: {type: http}}\n", level: "WARN"},
		{name: "no carrier, and nobody spoke of it", file: "carriers: {web: {type: http}}\n", level: "INFO"},
		{name: "not enabled", file: "embedded: {nats: {enabled: false}}\n"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := mustLoad(t, &loading{file: tc.file, environ: tc.environ})
			var log bytes.Buffer
			if got := c.natsSite().wanted(slog.New(slog.NewTextHandler(&log, nil))); got != tc.wanted {
				t.Errorf("wanted is %v", got)
			}
			said := log.String()
			if tc.level == "" && said != "" || tc.level != "" && (!strings.Contains(said, "level="+tc.level) || !strings.Contains(said, "key=embedded.nats")) {
				t.Errorf("the log says %q, want %s", said, tc.level)
			}
			if strings.Contains(said, "hunter2") {
				t.Errorf("a password is shown: %s", said)
			}
		})
	}
}
