package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// column is one column of the table.
type column struct {
	head    string
	cell    func(row) string
	isRight bool // numbers stand on the right
	spare   int  // in a narrow terminal, columns are left out in this order; 0 never
}

func columns(steps []step) []column {
	cs := []column{
		{head: "MACHINE", cell: func(r row) string { return r.Name }},
		{head: "MAC", cell: func(r row) string { return string(r.MAC) }, spare: 3},
		{head: "FIRMWARE", cell: func(r row) string { return string(r.Firmware) }, spare: 1},
		{head: "STATE", cell: func(r row) string { return cmp.Or(string(r.State), "-") }},
		{head: "PROFILE", cell: func(r row) string { return cmp.Or(r.Profile, "-") }, spare: 2},
	}
	for _, s := range steps {
		c := column{head: strings.ToUpper(s.String()), cell: func(r row) string { return seconds(r.At[s]) }, isRight: true}
		if s == stepClaimed || s == stepAgent {
			c.spare = 4
		}
		cs = append(cs, c)
	}
	return cs
}

// table draws the rows as text, with two lines for each row, none longer than width columns (0: no limit). The first
// line has the times of the steps, in seconds since power-on; the second has the latest event. Installed machines
// come first, with their own steps.
func table(rows []row, width int) string {
	isLive := func(r row) bool { return !r.IsInstalled }
	live, installed := slices.Clone(rows), slices.DeleteFunc(slices.Clone(rows), isLive)
	live = slices.DeleteFunc(live, func(r row) bool { return r.IsInstalled })
	switch {
	case len(installed) == 0:
		return part(live, bootSteps, width)
	case len(live) == 0:
		return part(installed, lifeSteps[1:], width)
	}
	return part(installed, lifeSteps[1:], width) + "\n" + part(live, bootSteps, width)
}

// part draws the rows of one kind.
func part(rows []row, steps []step, width int) string {
	var lines []string
	cs := columns(steps)
	for out := 0; ; out++ {
		cs = slices.DeleteFunc(cs, func(c column) bool { return c.spare > 0 && c.spare == out })
		lines = align(cs, rows)
		if out == 4 || width <= 0 || len(lines[0]) <= width {
			break
		}
	}
	var b strings.Builder
	for i, line := range lines {
		b.WriteString(cut(line, width) + "\n")
		if i > 0 {
			b.WriteString(cut("  "+lastWord(rows[i-1]), width) + "\n")
		}
	}
	return b.String()
}

// align sets the head and the rows in columns.
func align(cs []column, rows []row) []string {
	lines := make([]string, len(rows)+1)
	for i, c := range cs {
		cells := []string{c.head}
		for _, r := range rows {
			cells = append(cells, c.cell(r))
		}
		widest := 0
		for _, text := range cells {
			widest = max(widest, len(text))
		}
		for n, text := range cells {
			gap := strings.Repeat(" ", widest-len(text))
			if c.isRight {
				text = gap + text
			} else {
				text += gap
			}
			if i > 0 {
				text = "  " + text
			}
			lines[n] += text
		}
	}
	return lines
}

func lastWord(r row) string {
	switch {
	case r.IsInstalled:
		return lifeWord(r)
	case r.Problem != "":
		return "stopped: " + r.Problem
	case r.hasArrived():
		return "booted: " + strings.TrimPrefix(reportLine(r), "up: ")
	case r.Message != "":
		return r.Message
	}
	return "switched on, nothing heard yet"
}

// lifeWord is the line below an installed machine.
func lifeWord(r row) string {
	switch {
	case r.Problem != "":
		return "stopped: " + r.Problem
	case r.Op.ID != "":
		return r.progress()
	case r.At[stepFree] > 0:
		return "wiped and free again"
	case r.At[stepRunning] > 0:
		return "machine " + r.MachineName() + " runs: " + strings.TrimPrefix(reportLine(r), "up: ")
	case r.Message != "":
		return r.Message
	}
	return "switched on, nothing heard yet"
}

// progress describes how far the present operation is.
func (r row) progress() string {
	if r.Op.ID == "" {
		return ""
	}
	text := fmt.Sprintf("%s: %s", r.Op.Kind, r.Op.Step)
	if p := r.Op.Progress; p.Total > 0 || p.Bytes > 0 {
		text += fmt.Sprintf(" %.1f", float64(p.Bytes)/1e6)
		if p.Total > 0 {
			text += fmt.Sprintf(" of %.1f", float64(p.Total)/1e6)
		}
		text += fmt.Sprintf(" MB, %.1f MB/s", p.BytesPerSecond/1e6)
	}
	switch {
	case r.Op.State == inventory.OpWaiting:
		text += ", waits: " + r.Op.Reason
	case r.Op.AttemptN > 1:
		text += fmt.Sprintf(", attempt %d: %s", r.Op.AttemptN, r.Op.Reason)
	case r.Op.Progress.Detail != "":
		text += ", " + r.Op.Progress.Detail
	}
	return text
}

func seconds(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", d.Seconds())
}

// cut shortens a line to width columns; 0 means no limit.
func cut(line string, width int) string {
	r := []rune(line)
	if width <= 0 || len(r) <= width {
		return line
	}
	return string(r[:max(width-1, 0)]) + "…"
}
