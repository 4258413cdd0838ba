package core

import "testing"

func TestEveryNameFits(t *testing.T) {
	lists := [][]string{
		sayNames, receiptNames, traceNames, greetNames, whoisNames, cardNames, cardExtNames,
		briefNames, transferNames, capabilityNames, extNames, catalogueNames,
	}
	for f := fieldProtocol; f < fieldCount; f++ {
		lists = append(lists, []string{f.name()})
		if fieldNamed([]byte(f.name())) != f {
			t.Errorf("%s is not found by its name", f.name())
		}
	}
	for _, names := range lists {
		if len(names) > maxNames {
			t.Errorf("more than %d names: %q", maxNames, names)
		}
		for _, n := range names {
			if len(n) > maxNameBytes {
				t.Errorf("more than %d bytes: %s", maxNameBytes, n)
			}
		}
	}
}

func TestFold(t *testing.T) {
	for name, want := range map[string]string{
		"":                            "",
		"work_id":                     "work_id",
		"Wor\u212a_ID":                "work_id",
		"\u017fURFACE":                "surface",
		"\u0130d":                     "",
		"compozy.capability_catalog":  "compozy.capability_catalog",
		"compozy.capability_catalog_": "",
		"TRUST\u00a0":                 "",
		"[]^`{}@":                     "[]^`{}@",
	} {
		var buf [maxNameBytes]byte
		if got := string(fold(&buf, []byte(name))); got != want {
			t.Errorf("%q folds to %q", name, got)
		}
	}
}
