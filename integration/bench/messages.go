package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The conversation that most messages belong to.
const (
	workspace = "bench"
	channel   = "ops"
	// messageBytes is the size of a message.
	messageBytes = 600
	threads      = 16
	peers        = 20
)

// An id is random first, as ids are in the field, and ends with a number by
// which the load finds its message again.
const (
	messageHead  = `{"protocol":"compozy-network/v0","id":"`
	randomDigits = 20
	numberDigits = 10
	numberAt     = len(messageHead) + randomDigits
)

// mint makes numbered messages, each new.
type mint struct{ last atomic.Int64 }

// say makes a say of messageBytes in one of several threads.
func (m *mint) say() (n int64, raw []byte) {
	n = m.last.Add(1)
	return n, draw(n, fmt.Sprintf("peer-%d", n%peers), inThread(fmt.Sprintf("thread_%03d", n%threads)))
}

// sayIn makes a say in a conversation, whose members it is given.
func (m *mint) sayIn(from, conversation string) (n int64, raw []byte) {
	n = m.last.Add(1)
	return n, draw(n, from, conversation)
}

func inThread(id string) string { return `"surface":"thread","thread_id":"` + id + `"` }

func draw(n int64, from, conversation string) []byte {
	var random [randomDigits / 2]byte
	_, _ = rand.Read(random[:]) // It never fails.
	b := bytes.NewBuffer(make([]byte, 0, messageBytes))
	fmt.Fprintf(b, `%s%s%0*d","workspace_id":"%s","kind":"say","channel":"%s",%s,"from":"%s","ts":%d,"body":{"text":"`,
		messageHead, hex.EncodeToString(random[:]), numberDigits, n, workspace, channel, conversation, from, time.Now().Unix())
	b.WriteString(strings.Repeat("x", messageBytes-b.Len()-len(`"}}`)))
	b.WriteString(`"}}`)
	return b.Bytes()
}

// numberOf is the number of a message that the mint made, 0 for any other.
func numberOf(raw []byte) int64 {
	if len(raw) < numberAt+numberDigits || !bytes.HasPrefix(raw, []byte(messageHead)) {
		return 0
	}
	n, err := strconv.ParseInt(string(raw[numberAt:numberAt+numberDigits]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// idOf is the id of a message that the mint made.
func idOf(raw []byte) string { return string(raw[len(messageHead) : numberAt+numberDigits]) }
