package nats

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// probeEvery is how often the watchdog looks at the server.
	probeEvery = 2 * time.Second
	// probeSuspicion is how many bad looks in a row it takes to act.
	probeSuspicion = 2
	// longestRestartPause bounds the pause between restarts that do not help.
	longestRestartPause = 5 * time.Minute
)

// probe decides when the embedded server is restarted. After a failed write the
// server keeps the stream closed for writing for the rest of its life, while
// JetStream itself stays enabled and publishers hear nothing; only opening the
// store again helps, once the disk takes writes.
type probe struct {
	every        time.Duration
	suspicion    int
	longestPause time.Duration
	// canWrite tries the disk.
	canWrite func() error

	bad     int
	pause   time.Duration
	notTill time.Time
}

// restart reports whether it is time to restart, given what the server says of
// itself now.
func (p *probe) restart(health error, now time.Time) bool {
	if health == nil {
		p.bad = 0
		if now.After(p.notTill) {
			p.pause = 0
		}
		return false
	}
	p.bad++
	if p.bad < p.suspicion || now.Before(p.notTill) || p.canWrite() != nil {
		return false
	}
	p.bad = 0
	p.pause = min(max(2*p.pause, p.every), p.longestPause)
	p.notTill = now.Add(p.pause)
	return true
}

// watch looks after the server until Close.
func (s *Server) watch() {
	ticker := time.NewTicker(s.probe.every)
	defer ticker.Stop()
	reported := ""
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		health := s.health()
		if health != nil && health.Error() != reported {
			s.log.Error("the embedded nats server is not well", "error", health)
			reported = health.Error()
		}
		if !s.probe.restart(health, time.Now()) {
			continue
		}
		s.log.Warn("restarting the embedded nats server: its store keeps failing and the disk takes writes", "error", health)
		s.shutdown()
		if err := s.start(); err != nil {
			s.log.Error("the embedded nats server did not come back", "error", err)
		}
		reported = ""
	}
}

// health is what the server says of itself; nil when it is well.
func (s *Server) health() error {
	srv := s.running()
	if !srv.Running() {
		return errors.New("the server is not running")
	}
	if !s.options.JetStream {
		return nil
	}
	if !srv.JetStreamEnabled() {
		return errors.New("the server has switched its stream store off")
	}
	status := srv.Healthz(&server.HealthzOptions{Details: true})
	var found []error
	for _, e := range status.Errors {
		if e.Type == server.HealthzErrorStream || e.Type == server.HealthzErrorConsumer {
			found = append(found, fmt.Errorf("stream %s: %s", e.Stream, e.Error))
		}
	}
	return errors.Join(found...)
}
