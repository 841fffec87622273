package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// stageLine is the number of machines in each stage that has any, in the order of a boot.
func stageLine(n map[Stage]int) string {
	var words []string
	for _, s := range Stages() {
		if n[s] > 0 {
			words = append(words, fmt.Sprintf("%s %d", s, n[s]))
		}
	}
	return strings.Join(words, "  ")
}

// WriteSummary writes a result for people.
func (r *Result) WriteSummary(w io.Writer) error {
	fmt.Fprintf(w, "%d of %d machines arrived (%s) in %s; %.1f MB of loaders and files\n", r.Arrived, r.Hosts, r.Expect,
		r.Took.Round(time.Millisecond), float64(r.Bytes)/1e6)
	fmt.Fprintf(w, "at the end: %s\n", stageLine(r.Stages))
	if len(r.Steps) > 0 {
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "STEP\tN\tRETRIES\tP50\tP90\tP99\tMAX\t")
		for _, s := range r.Steps {
			fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t\n", s.Step, s.N, s.Retries, short(s.P50), short(s.P90), short(s.P99), short(s.Max))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(r.Counts) > 0 {
		var words []string
		for k, v := range r.Counts {
			words = append(words, fmt.Sprintf("%s %d", k, v))
		}
		slices.Sort(words)
		fmt.Fprintf(w, "\nalso: %s\n", strings.Join(words, ", "))
	}
	if len(r.Failures) > 0 {
		fmt.Fprintln(w, "\nboots that failed (machines are switched off and on again):")
		for _, f := range r.Failures {
			fmt.Fprintf(w, "  %5d x %s (as %s)\n", f.N, f.Reason, f.Example)
		}
	}
	for _, b := range r.Breaches {
		fmt.Fprintf(w, "ADDRESS GIVEN TWICE: %s\n", b)
	}
	return nil
}

// short rounds a duration to three digits or so.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(time.Microsecond).String()
	}
}
