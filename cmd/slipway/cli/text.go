package cli

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"slipway.dev/slipway/inventory"
)

// Plain makes a text fit for one cell: no control, formatting or direction characters.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// PlainLines is plain for a text of several lines.
func PlainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

// WriteText writes a text with a line end; terminals are not steered by it.
func WriteText(w io.Writer, text string) error {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(w, plainLinesKeepTabs(text))
	return err
}

// plainLinesKeepTabs is plainLines for a text that somebody may save.
func plainLinesKeepTabs(text string) string {
	parts := strings.Split(text, "\t")
	for i := range parts {
		parts[i] = PlainLines(parts[i])
	}
	return strings.Join(parts, "\t")
}

// Ago says how long something is past.
func Ago(at, now time.Time) string {
	switch d := now.Sub(at); {
	case at.IsZero():
		return ""
	case d < 2*time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// TimeText writes a time for people, in their zone.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// Value returns what a pointer points to, and the zero value for nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// YesNo is a boolean for people.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// OrDefault is the name of a pool, that of the default one when it is "".
func OrDefault(pool string) string {
	if pool == "" {
		return inventory.DefaultPool
	}
	return pool
}

// AddrText is an address for people, "" for none.
func AddrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// AddrsText joins addresses with spaces.
func AddrsText(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, " ")
}

// DurationText is a duration for people, "" for zero.
func DurationText(d inventory.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// CountText is a number for people, "" for zero.
func CountText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// OrNothing joins names with commas, and is "nothing" without any.
func OrNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// OrAdmins says whom something is for.
func OrAdmins(c inventory.Consumers) string {
	if c.IsZero() {
		return "configurations that an admin has saved"
	}
	return strings.Join(c.Texts(), " ")
}
