package images

import (
	"fmt"
	"time"
)

// Step is the present step of an import.
type Step string

// The steps of an import.
const (
	StepResolve Step = "resolve" // reading checksum lists, finding the files
	StepFetch   Step = "fetch"   // copying one file
	StepCheck   Step = "check"   // hashing what is here already
	StepShare   Step = "share"   // giving the files to another instance
	StepStore   Step = "store"   // registering the image
)

// Progress is the progress of an import. Sizes are in bytes.
type Progress struct {
	Step Step `json:"step"`
	// File is the file being copied: the FileN-th (from 1) of FilesN.
	File   string `json:"file,omitempty"`
	FileN  int    `json:"fileN,omitempty"`
	FilesN int    `json:"filesN,omitempty"`
	Source string `json:"source,omitempty"` // URL or path it comes from
	// Bytes of TotalBytes are here; TotalBytes is 0 while unknown. BytesPerSecond is over the last seconds.
	Bytes          int64 `json:"bytes"`
	TotalBytes     int64 `json:"totalBytes,omitempty"`
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Note is one line for people: resumed at, tried again because.
	Note string `json:"note,omitempty"`
}

// FormatBytes writes a size in decimal units with three digits: 40.8 MB.
func FormatBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for v >= 999.5 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f %s", v, units[0])
	case v < 99.95:
		return fmt.Sprintf("%.1f %s", v, units[0])
	}
	return fmt.Sprintf("%.0f %s", v, units[0])
}

// meter measures a rate as an average that forgets: what is meterWindow old counts for a third.
type meter struct {
	at   time.Time
	rate float64 // bytes per second
}

const (
	meterWindow = 4 * time.Second
	meterTick   = 250 * time.Millisecond
)

// add counts n bytes since the last sample and returns the rate.
func (m *meter) add(n int64, now time.Time) (rate int64, sampled bool) {
	if m.at.IsZero() {
		m.at = now
		return 0, false
	}
	took := now.Sub(m.at)
	if took < meterTick {
		return int64(m.rate), false
	}
	current := float64(n) / took.Seconds()
	weight := min(took.Seconds()/meterWindow.Seconds(), 1)
	if m.rate == 0 {
		weight = 1
	}
	m.rate += (current - m.rate) * weight
	m.at = now
	return int64(m.rate), true
}

// tracker turns what an import does into Progress for its watchers. One goroutine uses it: that of the import.
type tracker struct {
	now     func() time.Time
	report  func(Progress)
	p       Progress
	meter   meter
	metered int64 // bytes since the meter's last sample
}

func newTracker(now func() time.Time, report func(Progress), filesN int) *tracker {
	if report == nil {
		report = func(Progress) {}
	}
	return &tracker{now: now, report: report, p: Progress{FilesN: filesN}}
}

// step begins another step.
func (t *tracker) step(s Step) {
	t.p = Progress{Step: s, File: t.p.File, FileN: t.p.FileN, FilesN: t.p.FilesN, Source: t.p.Source}
	t.meter, t.metered = meter{}, 0
	t.report(t.p)
}

// file begins another file.
func (t *tracker) file(n int, name, source string) {
	t.p.File, t.p.FileN, t.p.Source = name, n, source
	t.step(StepFetch)
}

// at says how many bytes are here although none were copied: after a resume, or a start from the beginning.
func (t *tracker) at(bytes, total int64, note string) {
	t.p.Bytes, t.p.TotalBytes = bytes, total
	if note != "" {
		t.p.Note = note
	}
	t.report(t.p)
}

// copied counts bytes that have just arrived.
func (t *tracker) copied(n int64) {
	t.p.Bytes += n
	t.metered += n
	rate, sampled := t.meter.add(t.metered, t.now())
	if sampled {
		t.metered = 0
	}
	t.p.BytesPerSecond = rate
	t.report(t.p)
}

// note tells something about the running step.
func (t *tracker) note(format string, args ...any) {
	t.p.Note = fmt.Sprintf(format, args...)
	t.report(t.p)
}
