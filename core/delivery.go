package core

import (
	"fmt"
	"strconv"
	"strings"
)

// DeliveryID identifies one delivery: a message and a recipient, for one
// message is delivered to one recipient at most once.
type DeliveryID struct {
	Seq       int64
	Recipient int64
}

// String is the id as the API shows it: "SEQ-RECIPIENT".
func (d DeliveryID) String() string {
	return strconv.FormatInt(d.Seq, 10) + "-" + strconv.FormatInt(d.Recipient, 10)
}

// ParseDeliveryID reads what String wrote.
func ParseDeliveryID(s string) (DeliveryID, error) {
	a, b, ok := strings.Cut(s, "-")
	seq, err1 := strconv.ParseInt(a, 10, 64)
	rec, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err1 != nil || err2 != nil || seq <= 0 || rec <= 0 {
		return DeliveryID{}, fmt.Errorf("delivery id %q is not of the form SEQ-RECIPIENT", s)
	}
	return DeliveryID{Seq: seq, Recipient: rec}, nil
}

// DeliveryState is where a delivery stands.
type DeliveryState string

// The states of a delivery. DeliverySending is shown from memory and is never
// stored.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliverySending   DeliveryState = "sending"
	DeliveryAcked     DeliveryState = "acked"
	DeliveryExpired   DeliveryState = "expired"
	DeliveryDead      DeliveryState = "dead"
	DeliveryDiscarded DeliveryState = "discarded"
)

// Ignore says why a known recipient does not get a message.
type Ignore string

// The reasons of an ignore decision.
const (
	IgnoreOrigin           Ignore = "origin"
	IgnoreOutOfScope       Ignore = "out_of_scope"
	IgnoreNotAddressed     Ignore = "not_addressed"
	IgnoreNotParticipant   Ignore = "not_participant"
	IgnoreLocatedElsewhere Ignore = "located_elsewhere"
)
