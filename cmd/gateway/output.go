package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// output is the -o flag of a command that prints data.
type output struct{ format string }

func (o *output) addFlag(cmd *cobra.Command, standard string) {
	cmd.Flags().StringVarP(&o.format, "output", "o", standard, "`FORMAT` of the data: text or json")
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.format != "text" && o.format != "json" {
			return usagef("-o: %q is not a format; use text or json", o.format)
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

func (o *output) json() bool { return o.format == "json" }

// printJSON writes one value on one line.
func printJSON(w io.Writer, v any) error {
	return json.NewEncoder(w).Encode(v)
}

// table collects rows and writes them in aligned columns, below the heading
// where it has one.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	t.rows = append(t.rows, cells)
}

// write prints the title and the table; a table without rows is "none".
func (t *table) write(w io.Writer, title string) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintf(w, "%s: none\n", title)
		return err
	}
	if title != "" {
		fmt.Fprintf(w, "%s:\n", title)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if t.head != nil {
		fmt.Fprintln(tw, strings.Join(t.head, "\t"))
	}
	for _, row := range t.rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// printable makes text from strangers safe for a terminal: what is not a plain
// printable character is escaped, and empty text is a dash.
func printable(s string) string {
	if s == "" {
		return "-"
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.QuoteToGraphic(s)
		}
	}
	return s
}

// stamp is a time as people are shown it, in UTC as everything else that speaks of
// it; empty when there is none.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
