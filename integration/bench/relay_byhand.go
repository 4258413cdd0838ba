package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const contestByHand = "by hand"

// byHand is what a good engineer would write in an afternoon: nats.go,
// database/sql and paho, one full-sync transaction a message that also
// deduplicates, QoS 1 on the way out, and the acknowledgement after both.
func byHand(ctx context.Context, o contestOptions) error {
	db, err := openContest(ctx, o.dir)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	conn, err := nats.Connect("nats://" + o.nats)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + o.mqtt).SetClientID("by-hand"))
	if err := done(client.Connect()); err != nil {
		return err
	}
	defer client.Disconnect(100)
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	consumer, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: "by-hand", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 4096,
	})
	if err != nil {
		return err
	}
	// sent are acknowledged in order, without holding up the next commit.
	type sent struct {
		msg   jetstream.Msg
		token paho.Token
	}
	queue := make(chan sent, 4096)
	go func() {
		for s := range queue {
			if done(s.token) == nil {
				_ = s.msg.Ack() // A lost one is redelivered, and a duplicate.
			}
		}
	}()
	consuming, err := consumer.Consume(func(msg jetstream.Msg) {
		fresh, err := storeByHand(ctx, db, msg.Data())
		if err != nil || !fresh {
			settleByHand(msg, err)
			return
		}
		queue <- sent{msg, client.Publish(topic, 1, false, msg.Data())}
	})
	if err != nil {
		return err
	}
	defer consuming.Stop()
	<-ctx.Done()
	return nil
}

func settleByHand(msg jetstream.Msg, err error) {
	if err != nil {
		_ = msg.NakWithDelay(time.Second)
		return
	}
	_ = msg.Ack()
}

// storeByHand reports whether the message is new.
func storeByHand(ctx context.Context, db *sql.DB, raw []byte) (bool, error) {
	var head struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return false, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx, "INSERT INTO messages (id, payload) VALUES (?, ?) ON CONFLICT DO NOTHING", head.ID, raw)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO deliveries (message, destination) VALUES (?, 'mqtt')", head.ID); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// openContest opens a database with full sync.
func openContest(ctx context.Context, dir string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "contest.db")+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE messages (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, payload BLOB NOT NULL)",
		"CREATE TABLE deliveries (message TEXT NOT NULL, destination TEXT NOT NULL, PRIMARY KEY (message, destination)) WITHOUT ROWID",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("make the tables: %w", err)
		}
	}
	return db, nil
}
