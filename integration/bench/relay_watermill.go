package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	wmsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats.go"
)

const (
	contestWatermill = "Watermill"
	// watermillHandlers may commit and publish at the same time: more speed, and
	// no order.
	watermillHandlers = 16
)

// inWatermill does the job with Watermill's parts: its router and deduplicator,
// watermill-nats in, watermill-sql for the one commit, and a publisher for MQTT
// QoS 1, which Watermill lacks. The router acknowledges when all of it is done.
func inWatermill(ctx context.Context, o contestOptions) error {
	db, err := openContest(ctx, o.dir)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, watermillTable); err != nil {
		return err
	}
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + o.mqtt).SetClientID("watermill"))
	if err := done(client.Connect()); err != nil {
		return err
	}
	defer client.Disconnect(100)
	log := watermill.NopLogger{}
	subscriber, err := wmnats.NewSubscriber(wmnats.SubscriberConfig{
		URL:              "nats://" + o.nats,
		QueueGroupPrefix: "watermill",
		SubscribersCount: watermillHandlers,
		Unmarshaler:      envelopes{},
		JetStream: wmnats.JetStreamConfig{
			DurablePrefix:    "watermill",
			SubscribeOptions: []nats.SubOpt{nats.DeliverAll(), nats.AckExplicit(), nats.MaxAckPending(4096), nats.BindStream(stream)},
		},
	}, log)
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{}, log)
	if err != nil {
		return err
	}
	known, err := middleware.NewMapExpiringKeyRepository(5 * time.Minute)
	if err != nil {
		return err
	}
	deduplicator := &middleware.Deduplicator{KeyFactory: middleware.NewMessageHasherSHA256(messageBytes), Repository: known}
	router.AddMiddleware(deduplicator.Middleware)
	router.AddHandler("relay", subject, subscriber, topic, mqttPublisher{client},
		func(msg *message.Message) ([]*message.Message, error) {
			return []*message.Message{msg}, storeInWatermill(msg, db, log)
		})
	return router.Run(ctx)
}

// storeInWatermill commits the message through watermill-sql.
func storeInWatermill(msg *message.Message, db *sql.DB, log watermill.LoggerAdapter) error {
	tx, err := db.BeginTx(msg.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	// SQLite takes the statements of the MySQL schema.
	publisher, err := wmsql.NewPublisher(wmsql.TxFromStdSQL(tx), wmsql.PublisherConfig{SchemaAdapter: wmsql.DefaultMySQLSchema{}}, log)
	if err != nil {
		return err
	}
	if err := publisher.Publish("messages", msg); err != nil {
		return err
	}
	return tx.Commit()
}

const watermillTable = "CREATE TABLE watermill_messages (`offset` INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL," +
	" created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, payload TEXT, metadata TEXT)"

// envelopes reads plain envelopes, which have no headers of Watermill's.
type envelopes struct{}

func (envelopes) Unmarshal(m *nats.Msg) (*message.Message, error) {
	return message.NewMessage(watermill.NewUUID(), m.Data), nil
}

// mqttPublisher publishes with QoS 1 and waits for the PUBACK.
type mqttPublisher struct{ client paho.Client }

func (p mqttPublisher) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if err := done(p.client.Publish(topic, 1, false, []byte(m.Payload))); err != nil {
			return err
		}
	}
	return nil
}

func (mqttPublisher) Close() error { return nil }
