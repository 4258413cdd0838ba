package core

import "bytes"

// headBytes is how much is kept of a frame that is too large anyway: enough to
// tell two of them apart.
const headBytes = 4 << 10

// Bounded is the frame as a carrier hands it over that has read all of it: a
// frame larger than the limit, white space around it left aside, is cut to a
// copy of its head, with its true size in Size. So the gateway never holds the
// whole of what it is going to refuse. A limit of 0 is none.
func (in Inbound) Bounded(limit int) Inbound {
	if limit <= 0 || len(in.Payload) <= limit {
		return in
	}
	payload := bytes.Trim(in.Payload, " \t\r\n")
	if len(payload) <= limit {
		return in
	}
	in.Size = max(in.Size, int64(len(payload)))
	in.Payload = bytes.Clone(payload[:min(headBytes, limit)])
	return in
}
