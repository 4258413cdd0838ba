package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// dedupWindow is how long a stream that the gateway creates remembers the message
// ids of publishes. It lets a send that is repeated after a lost PubAck be told
// from a new one; the envelope's own key is no concern of it.
const dedupWindow = 2 * time.Minute

// prepare finds or creates the stream and this gateway's consumer on it.
func (s *session) prepare(js jetstream.JetStream) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(s.ctx, setupTimeout)
	defer cancel()
	stream, err := s.ensureStream(ctx, js)
	if err != nil {
		return nil, err
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:       s.consumer,
		Description:   fmt.Sprintf("carrier %s of a compozy gateway", s.host.Name),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       s.cfg.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: s.cfg.MaxAckPending,
		FilterSubject: s.subjects.all(),
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare consumer %s with filter %s on stream %s: %w",
			s.consumer, s.subjects.all(), s.cfg.Stream, err)
	}
	return consumer, nil
}

// ensureStream finds the stream, or creates it. One that exists is taken as it
// is, if messages on all our subjects can be stored there.
func (s *session) ensureStream(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, s.cfg.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = s.createStream(ctx, js)
	}
	if errors.Is(err, natsgo.ErrNoResponders) {
		return nil, fmt.Errorf("prepare stream %s: the server has no JetStream: %w", s.cfg.Stream, err)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare stream %s: %w", s.cfg.Stream, err)
	}
	subjects := stream.CachedInfo().Config.Subjects
	for _, needed := range s.subjects.needed() {
		if !coveredBy(subjects, needed) {
			return nil, fmt.Errorf("stream %s exists with the subjects %s, which do not take in %s",
				s.cfg.Stream, listed(subjects), needed)
		}
	}
	return stream, nil
}

func (s *session) createStream(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	config := jetstream.StreamConfig{
		Name:        s.cfg.Stream,
		Description: "envelopes of compozy-network/v0",
		Subjects:    []string{s.subjects.all()},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		MaxAge:      s.cfg.StreamMaxAge,
		Replicas:    s.cfg.StreamReplicas,
		Duplicates:  dedupWindow,
	}
	if config.MaxAge > 0 {
		config.Duplicates = min(config.Duplicates, config.MaxAge)
	}
	stream, err := js.CreateStream(ctx, config)
	switch {
	case err == nil:
		s.log.Info("nats stream created", "stream", s.cfg.Stream, "subjects", config.Subjects, "max_age", config.MaxAge)
		return stream, nil
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		// Another gateway was faster.
		return js.Stream(ctx, s.cfg.Stream)
	case isCode(err, codeSubjectOverlap):
		return nil, fmt.Errorf("its subjects %s overlap with those of %s: %w",
			s.subjects.all(), s.overlapping(ctx, js), err)
	}
	return nil, err
}

// overlapping names the streams that hold a part of our subjects.
func (s *session) overlapping(ctx context.Context, js jetstream.JetStream) string {
	var found []string
	list := js.ListStreams(ctx, jetstream.WithStreamListSubject(s.subjects.all()))
	for info := range list.Info() {
		found = append(found, fmt.Sprintf("stream %s (%s)", info.Config.Name, listed(info.Config.Subjects)))
	}
	if len(found) == 0 {
		return "another stream"
	}
	return strings.Join(found, " and ")
}

func coveredBy(patterns []string, needed string) bool {
	for _, p := range patterns {
		if covers(p, needed) {
			return true
		}
	}
	return false
}

// listed bounds what is shown of a list.
func listed(subjects []string) string {
	const most = 5
	if len(subjects) == 0 {
		return "(none)"
	}
	if len(subjects) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(subjects[:most], " "), len(subjects)-most)
	}
	return strings.Join(subjects, " ")
}
