//go:build brokers

package integration

import (
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answer is what the gateway said to one envelope, alone or on one line of many.
type answer struct {
	Line        int    `json:"line"`
	Status      int    `json:"status"`
	ID          string `json:"id"`
	Seq         *int64 `json:"seq"`
	CommittedAt string `json:"committed_at"`
	Duplicate   bool   `json:"duplicate"`
	Parked      bool   `json:"parked"`
	ReasonCode  string `json:"reason_code"`
	Detail      string `json:"detail"`

	contentType string
	retryAfter  string
}

// taken reports whether the answer says that the envelope is durably taken.
func (a answer) taken() bool { return a.Status == 202 || a.Status == 200 }

// tryPost posts one envelope with curl. The status is 0 when nobody answered.
func (g *gateway) tryPost(t *testing.T, payload string) answer {
	t.Helper()
	stdout, _, status := output(t, 30*time.Second, []byte(payload), need(t, "curl", "curl"),
		"-s", "--max-time", "25", "-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", "@-",
		"-w", "\n%{http_code}\t%{content_type}\t%header{retry-after}", g.url("/v0/envelopes"))
	var a answer
	end := strings.LastIndexByte(stdout, '\n')
	if status != 0 || end < 0 {
		return a
	}
	if err := json.Unmarshal([]byte(stdout[:end]), &a); err != nil {
		t.Fatalf("the answer is no JSON: %v\n%s", err, stdout)
	}
	trailer := strings.Split(stdout[end+1:], "\t")
	a.Status, _ = strconv.Atoi(trailer[0]) // curl writes a number
	a.contentType, a.retryAfter = trailer[1], trailer[2]
	return a
}

// post posts an envelope that must be taken.
func (g *gateway) post(t *testing.T, payload string) answer {
	t.Helper()
	a := g.tryPost(t, payload)
	if !a.taken() {
		t.Fatalf("POST gives %+v for\n%s", a, payload)
	}
	return a
}

// postLines posts many envelopes in one request and returns as many answers as
// came.
func (g *gateway) postLines(t *testing.T, lines []string) []answer {
	t.Helper()
	p := g.postingLines(t, lines)
	p.process.status(t, time.Minute)
	return p.answers(t)
}

// batch is a request of many envelopes that is under way.
type batch struct {
	process *program
	out     *transcript
}

func (g *gateway) postingLines(t *testing.T, lines []string) batch {
	t.Helper()
	return g.posting(t, strings.NewReader(strings.Join(lines, "\n")+"\n"), "--data-binary", "@-")
}

// postingStream posts lines while they come.
func (g *gateway) postingStream(t *testing.T, lines io.Reader) batch {
	t.Helper()
	return g.posting(t, lines, "-X", "POST", "-T", "-")
}

func (g *gateway) posting(t *testing.T, lines io.Reader, how ...string) batch {
	t.Helper()
	b := batch{out: &transcript{}}
	arguments := append(how, "-sN", "--max-time", "50", "-H", "Content-Type: application/x-ndjson", "-H", "Expect:", g.url("/v0/envelopes"))
	b.process = start(t, launch{stdin: lines, stdout: b.out, quiet: true}, need(t, "curl", "curl"), arguments...)
	return b
}

// answers are those that came so far.
func (b batch) answers(t *testing.T) []answer {
	t.Helper()
	text := b.out.String()
	var all []answer
	for line := range strings.SplitSeq(text[:strings.LastIndexByte(text, '\n')+1], "\n") {
		if line == "" {
			continue
		}
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("the answer is no JSON: %v\n%s", err, line)
		}
		all = append(all, a)
	}
	return all
}

// observer reads a channel's stream: curl -N.
type observer struct {
	arrivals
	process *program
}

// observe follows what a peer may observe in the channel, from now on.
func (g *gateway) observe(t *testing.T, peer string, after int) *observer {
	t.Helper()
	o := &observer{}
	headers := &transcript{}
	var id string
	lines := &splitter{take: func(line []byte) {
		text := string(line)
		_, _ = headers.Write(append(line, '\n')) // a transcript takes everything
		if v, ok := strings.CutPrefix(text, "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(text, "data: "); ok {
			o.add(id, []byte(v))
		}
	}}
	query := url.Values{"peer": {peer}}
	if after >= 0 {
		query.Set("after", strconv.Itoa(after))
	}
	o.process = start(t, launch{stdout: lines, said: headers}, need(t, "curl", "curl"),
		"-siN", g.url("/v0/workspaces/"+workspace+"/channels/"+channel+"/stream?"+query.Encode()))
	eventually(t, 10*time.Second, "the stream begins", func() bool {
		return strings.Contains(headers.String(), "200 OK") && strings.Contains(headers.String(), "\r\n\r\n")
	})
	return o
}
