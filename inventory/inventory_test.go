package inventory

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write generated files instead of comparing with them")

// wantKind expects an *Error of that kind with the words in its message.
func wantKind(t *testing.T, err error, kind Kind, words string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Msg, words) {
		t.Errorf("got %v, want %s with %q", err, kind, words)
	}
}

func TestErrorShowsItsCauseToTheLogOnly(t *testing.T) {
	e := &Error{Kind: Unavailable, Msg: "the disk is full", Err: io.ErrShortWrite}
	if e.Error() != "the disk is full: short write" || !errors.Is(e, io.ErrShortWrite) {
		t.Errorf("got %q", e.Error())
	}
	hinted := e.WithHint("free %d GiB", 2)
	if hinted.Hint != "free 2 GiB" || e.Hint != "" {
		t.Errorf("hints are %q and %q; WithHint must leave the original alone", hinted.Hint, e.Hint)
	}
}

func TestParseMAC(t *testing.T) {
	for _, in := range []string{
		"52:54:00:aa:00:01", "52-54-00-AA-00-01", "5254.00aa.0001", "525400AA0001",
	} {
		m, err := ParseMAC(in)
		if err != nil || m != "52:54:00:aa:00:01" {
			t.Errorf("ParseMAC(%q) = %q, %v", in, m, err)
		}
	}
	if h := MAC("52:54:00:aa:00:01").Hyphens(); h != "52-54-00-aa-00-01" {
		t.Errorf("Hyphens gives %q", h)
	}
	for _, in := range []string{
		"", "52:54:00:aa:00", "52:54:00:aa:00:01:02", "52:54:00:aa:00:0g", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
		"52:54:00:aa:00:01\n", " 525400aa0001", "５２5400aa0001",
	} {
		m, err := ParseMAC(in)
		wantKind(t, err, Invalid, "")
		if m != "" {
			t.Errorf("ParseMAC(%q) returned %q beside its error", in, m)
		}
	}
}

func FuzzParseMAC(f *testing.F) {
	f.Add("52:54:00:aa:00:01")
	f.Add("5254.00AA.0001")
	f.Fuzz(func(t *testing.T, in string) {
		m, err := ParseMAC(in)
		if err != nil {
			return
		}
		again, err := ParseMAC(string(m))
		if err != nil || again != m || len(m) != 17 {
			t.Errorf("%q gives %q, which gives %q, %v", in, m, again, err)
		}
	})
}

func TestDuration(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 10 * time.Second: "10s", 90 * time.Second: "1m30s", 70 * time.Second: "1m10s", time.Minute: "1m",
		10 * time.Minute: "10m", time.Hour: "1h", 12 * time.Hour: "12h", 90 * time.Minute: "1h30m", 70 * time.Minute: "1h10m",
		time.Hour + 20*time.Second: "1h0m20s", 1500 * time.Millisecond: "1.5s", 24 * time.Hour: "24h", -time.Hour: "-1h",
	} {
		if got := Duration(in).String(); got != want {
			t.Errorf("%v is written %q, want %q", in, got, want)
		}
	}
	var v struct{ D Duration }
	wantKind(t, json.Unmarshal([]byte(`{"D":"soon"}`), &v), Invalid, "soon")
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64().Draw(t, "ns"))
		b, err := json.Marshal(struct{ D Duration }{d})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &v); err != nil || v.D != d {
			t.Fatalf("%d is written %s and read as %d, %v", d, b, v.D, err)
		}
	})
}

func TestCheckName(t *testing.T) {
	for _, ok := range []string{"a", "0", "r1-u01", strings.Repeat("a", 63)} {
		if err := CheckName("host", ok); err != nil {
			t.Errorf("%q is refused: %v", ok, err)
		}
	}
	for _, bad := range []string{"", "-a", "a-", "A", "a_b", "a.b", "a/b", "a\n", "é", strings.Repeat("a", 64)} {
		wantKind(t, CheckName("host", bad), Invalid, "host")
	}
}

func TestCheckLabels(t *testing.T) {
	if err := CheckLabels(map[string]string{"role": "worker", "example.com/zone": "", "a_b.c-d": "A_1.2-3"}); err != nil {
		t.Error(err)
	}
	for k, v := range map[string]string{"": "x", "-a": "x", "a b": "x", "a=b": "x", "a": "b c", "b": "-x", "c": strings.Repeat("x", 64), "d": "a,b", "e": "x\n"} {
		wantKind(t, CheckLabels(map[string]string{k: v}), Invalid, "label")
	}
}

func TestCheckText(t *testing.T) {
	if err := CheckText("serial", "S 1\tx\ny é", 20); err != nil {
		t.Error(err)
	}
	wantKind(t, CheckText("serial", "a\x00b", 20), Invalid, "byte 1")
	wantKind(t, CheckText("serial", "a\x1b[2J", 20), Invalid, "control character")
	wantKind(t, CheckText("serial", "a\x7f", 20), Invalid, "control character")
	wantKind(t, CheckText("serial", "aaaa", 3), Invalid, "4 bytes")
}

func TestCleanMakesAnyTextFit(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{" SN1 ", 10, "SN1"},
		{"a\x00b\nc", 10, "a b c"},
		{"\xff\xfeDell", 10, "Dell"},
		{"äöü", 4, "äö"},
		{"äöü", 3, "ä"}, // no half of a letter
		{"\x1b[31mred", 10, "[31mred"},
		{"", 0, ""},
	} {
		if got := Clean(c.in, c.limit); got != c.want {
			t.Errorf("Clean(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		got := Clean(in, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			t.Fatalf("Clean(%q, %d) = %q", in, limit, got)
		}
	})
}

func TestParseDigest(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for _, in := range []string{hex, "sha256:" + hex, strings.ToUpper(hex)} {
		d, err := ParseDigest(in)
		if err != nil || d != Digest("sha256:"+hex) || d.Hex() != hex {
			t.Errorf("ParseDigest(%q) = %q, %v", in, d, err)
		}
	}
	for _, in := range []string{"", "sha256:", hex[1:], "md5:" + hex, hex + "\n", "../" + hex} {
		_, err := ParseDigest(in)
		wantKind(t, err, Invalid, "digest")
	}
}

func TestCleanDropsWhatTurnsTheDirectionOfWriting(t *testing.T) {
	if got := Clean("a\u202egnp.exe\u202c \u2066b\u2069\u200f", 100); got != "agnp.exe b" {
		t.Errorf("it is %q", got)
	}
}

func TestADurationMayBeInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0d": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "99999999d", "1d2h", "soon"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
