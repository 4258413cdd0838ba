package spool

import (
	"strings"
	"testing"
)

func TestEveryProblemIsReportedWithItsKey(t *testing.T) {
	problems := Config{}.Validate("carriers.box")
	if len(problems) != 2 {
		t.Fatalf("problems %v, want two", problems)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Error(), "carriers.box.") {
			t.Errorf("problem %q does not begin with its key", p)
		}
	}
	complete := DefaultConfig()
	complete.Dir = "spool"
	if problems := complete.Validate("carriers.box"); problems != nil {
		t.Errorf("the defaults with a directory have problems: %v", problems)
	}
}
