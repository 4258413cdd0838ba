package core

func (e *Envelope) readGreet() *Rejection {
	v := pick(e.Body, greetNames)
	if summary := v[1]; !isStringOrNil(summary) {
		return badBody("body.summary is not a string")
	}
	return e.readCard()
}

func (e *Envelope) readWhois() *Rejection {
	v := pick(e.Body, whoisNames)
	kind, query, card := v[0], v[1], v[2]
	switch {
	case kind == nil || !isString(kind):
		return badBody("body.type is missing or not a string")
	case !isStringOrNil(query):
		return badBody("body.query is not a string")
	}
	w := &Whois{Type: stringOf(kind), Query: stringOf(query)}
	switch w.Type {
	case WhoisRequest:
		if card != nil {
			return badBody("body.peer_card stands in a request")
		}
	case WhoisResponse:
		if e.ReplyTo == "" {
			return badBody("reply_to is missing in a response")
		}
		if rej := e.readCard(); rej != nil {
			return rej
		}
	default:
		return badBody("body.type is neither request nor response")
	}
	e.Whois = w
	return nil
}

// firstCardList is where the lists of a card begin in cardNames, cardLists how
// many they are.
const (
	firstCardList = 2
	cardLists     = 4
)

// readCard reads the peer card of a greet or a response: the sender's own.
func (e *Envelope) readCard() *Rejection {
	if e.subject == nil {
		return badBody("body.peer_card is missing or not an object")
	}
	v := &e.subject.values
	id, display, ext := v[0], v[1], v[6]
	switch {
	case id == nil || !isString(id):
		return badBody("peer_card.peer_id is missing or not a string")
	case !isStringOrNil(display):
		return badBody("peer_card.display_name is not a string")
	case ext != nil && !isObject(ext):
		return badBody("peer_card.ext is not an object")
	}
	var copies texts
	copies.makeRoom(v[:firstCardList+cardLists])
	card := &PeerCard{PeerID: copies.stringOf(id), DisplayName: copies.stringOf(display), Raw: e.subject.raw}
	if card.PeerID != e.From {
		return badBody("peer_card.peer_id is not from")
	}
	lists := [cardLists]*[]string{&card.ProfilesSupported, &card.Capabilities, &card.ArtifactsSupported, &card.TrustModes}
	for i, into := range lists {
		i += firstCardList
		if v[i] == nil {
			return badBody("peer_card." + cardNames[i] + " is missing")
		}
		var ok bool
		if *into, ok = copies.stringsOf(v[i]); !ok {
			return badBody("peer_card." + cardNames[i] + " is not an array of strings")
		}
	}
	e.Card = card
	return nil
}
