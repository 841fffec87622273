package consoles

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/web/wire"
)

var testStart = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestARecordingIsBounded(t *testing.T) {
	var x recording
	for i := range 10_000 {
		x.add([]byte(fmt.Sprintf("%099d\n", i)), testStart)
	}
	if len(x.text) > recordingBytes || x.end != 1_000_000 || !strings.HasSuffix(string(x.text), "9999\n") {
		t.Errorf("%d bytes kept of %d", len(x.text), x.end)
	}
}

func TestARecordingKnowsWhenEachLineWasSaid(t *testing.T) {
	var x recording
	at := func(s int) time.Time { return testStart.Add(time.Duration(s) * time.Second) }
	x.add([]byte("GRUB\r\n\x1b[31mboo"), at(0))
	x.add([]byte("ting\x1b[0m\r\n"), at(5))
	x.add([]byte("<script>\u202e\r\nlo"), at(9))
	want := []wire.ConsoleLine{
		{At: at(0), Text: "GRUB"}, {At: at(0), Text: "booting"}, {At: at(9), Text: "<script>\u202e"}, {At: at(9), Text: "lo"},
	}
	if got := x.lines(); !slices.Equal(got, want) {
		t.Errorf("lines are %v, want %v", got, want)
	}
	for i := range 20_000 {
		x.add([]byte(fmt.Sprintf("%099d\n", i)), at(10+2*i))
	}
	all := x.lines()
	if last := all[len(all)-1]; len(x.marks) > marksMax || len(all) > linesMax || !last.At.Equal(at(10+2*19_999)) {
		t.Errorf("%d marks, %d lines, the last from %v", len(x.marks), len(all), last.At)
	}
	if first := all[0]; first.At.Before(at(10)) || first.At.After(all[len(all)-1].At) {
		t.Errorf("the first line that is left is from %v", first.At)
	}
}

func TestPlainTextHasNoEscapeCodes(t *testing.T) {
	got := plainText([]byte("\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07x\x00y\x1b(B\xffz"))
	if want := "red\nxy\ufffdz"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
