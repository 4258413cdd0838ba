package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
)

// series is what was measured of one contestant at one load, a value for each
// round.
type series struct {
	// What is the question, such as "accept" or "relay".
	What       string `json:"what"`
	Contestant string `json:"contestant"`
	// X is the load or size, in the unit that the question implies.
	X      float64   `json:"x"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
}

// results are all series in the order of their first value.
type results struct{ list []*series }

func (r *results) add(what, contestant string, x float64, unit string, value float64) {
	s := r.find(what, contestant, x)
	if s == nil {
		s = &series{What: what, Contestant: contestant, X: x, Unit: unit}
		r.list = append(r.list, s)
	}
	s.Values = append(s.Values, value)
	s.Median = median(s.Values)
}

func (r *results) find(what, contestant string, x float64) *series {
	for _, s := range r.list {
		if s.What == what && s.Contestant == contestant && s.X == x {
			return s
		}
	}
	return nil
}

// median is the median of a series, and false when it was not measured.
func (r *results) median(what, contestant string, x float64) (float64, bool) {
	if s := r.find(what, contestant, x); s != nil {
		return s.Median, true
	}
	return 0, false
}

// best is the highest median of a contestant over all loads.
func (r *results) best(what, contestant string) (float64, bool) {
	found, best := false, 0.0
	for _, s := range r.list {
		if s.What == what && s.Contestant == contestant {
			found, best = true, max(best, s.Median)
		}
	}
	return best, found
}

// of lists the series of a question, and its contestants in order.
func (r *results) of(what string) (list []*series, contestants []string) {
	for _, s := range r.list {
		if s.What != what {
			continue
		}
		list = append(list, s)
		if !slices.Contains(contestants, s.Contestant) {
			contestants = append(contestants, s.Contestant)
		}
	}
	return list, contestants
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// print shows every series with its spread.
func (r *results) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "what\tcontestant\tat\tmedian\tunit\tlowest\thighest\trounds")
	for _, s := range r.list {
		fmt.Fprintf(t, "%s\t%s\t%g\t%s\t%s\t%s\t%s\t%d\n", s.What, s.Contestant, s.X,
			short(s.Median), s.Unit, short(slices.Min(s.Values)), short(slices.Max(s.Values)), len(s.Values))
	}
	return t.Flush()
}

// short keeps three digits.
func short(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// save writes the series as JSON and as CSV.
func (r *results) save(dir string) error {
	text, err := json.MarshalIndent(r.list, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "results.csv"))
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	rows := [][]string{{"what", "contestant", "x", "unit", "round", "value"}}
	for _, s := range r.list {
		for round, v := range s.Values {
			rows = append(rows, []string{
				s.What, s.Contestant, fmt.Sprint(s.X), s.Unit, strconv.Itoa(round + 1), strconv.FormatFloat(v, 'g', 6, 64),
			})
		}
	}
	if err := w.WriteAll(rows); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
