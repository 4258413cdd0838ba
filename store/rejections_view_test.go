package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestTheRejectionLogIsReadLatestFirstAndPageByPage(t *testing.T) {
	s := openStore(t, t.TempDir())
	if list, err := s.Rejections(t.Context(), 0, 10); err != nil || list == nil || len(list) != 0 {
		t.Fatalf("an empty log reads as %v, %v", list, err)
	}
	hash := sha256.Sum256([]byte("x"))
	first := Rejection{
		Hash: hash, Size: 7, Carrier: "mqtt", Reason: core.ReasonMalformed, Detail: "no \xff", At: noon,
		ClaimedWorkspaceID: "ws\x00", ClaimedID: "'; DROP TABLE messages; --", ClaimedFrom: "\xff",
	}
	again := first
	again.At = noon.Add(time.Hour)
	second := Rejection{Hash: hash, Size: 8, Carrier: "nats", Reason: core.ReasonExpired, At: noon}
	apply(t, s, &Changes{Rejections: []Rejection{first, second}})
	apply(t, s, &Changes{Rejections: []Rejection{again}})

	page, err := s.Rejections(t.Context(), 0, 1)
	if err != nil || len(page) != 1 || page[0].Carrier != "nats" || page[0].Reason != core.ReasonExpired || page[0].Count != 1 || page[0].ClaimedID != "" {
		t.Fatalf("the latest is %+v, %v", page, err)
	}
	page, err = s.Rejections(t.Context(), page[0].Position, 10)
	if err != nil || len(page) != 1 {
		t.Fatalf("behind it stand %+v, %v", page, err)
	}
	want := core.RejectionView{
		Position: page[0].Position, Carrier: "mqtt", Reason: core.ReasonMalformed, Detail: "no \uFFFD",
		ClaimedWorkspaceID: "ws\x00", ClaimedID: "'; DROP TABLE messages; --", ClaimedFrom: "\uFFFD",
		SHA256: hex.EncodeToString(hash[:]), Bytes: 7, Count: 2, FirstAt: noon, LastAt: again.At,
	}
	if page[0] != want {
		t.Errorf("got  %+v\nwant %+v", page[0], want)
	}
	if _, err := json.Marshal(page); err != nil {
		t.Error(err)
	}
}
