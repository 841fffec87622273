package cli

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/images"
)

// drawBar draws progress as one line of at most width columns for a terminal. Where the line is too narrow it keeps the
// numbers, and gives up the bar first and then the name.
func drawBar(p images.Progress, width int) string {
	numbers := numbersOf(p)
	label := labelOf(p)
	room := width - len([]rune(label)) - len([]rune(numbers)) - 4
	if p.Step != images.StepFetch || p.TotalBytes <= 0 || room < 8 {
		line := strings.TrimSpace(label + "  " + numbers)
		if len([]rune(line)) > width {
			line = numbers
		}
		return cutLine(line, width)
	}
	room = min(room, 40)
	filled := int(min(p.Bytes, p.TotalBytes) * int64(room) / p.TotalBytes)
	bar := strings.Repeat("=", filled)
	if filled < room {
		bar += ">" + strings.Repeat(" ", room-filled-1)
	}
	return fmt.Sprintf("%s [%s] %s", label, bar, numbers)
}

func labelOf(p images.Progress) string {
	switch p.Step {
	case images.StepResolve:
		return "finding the files"
	case images.StepCheck:
		return countedOf(p, "checking")
	case images.StepStore:
		return "registering the image"
	}
	return countedOf(p, p.File)
}

func countedOf(p images.Progress, text string) string {
	if p.Step == images.StepCheck && p.File != "" {
		text += " " + p.File
	}
	if p.FilesN > 1 {
		text = fmt.Sprintf("%s (%d/%d)", text, p.FileN, p.FilesN)
	}
	return text
}

func numbersOf(p images.Progress) string {
	if p.Step != images.StepFetch && p.Step != images.StepCheck {
		return ""
	}
	var parts []string
	if p.TotalBytes > 0 {
		parts = append(parts, fmt.Sprintf("%3d%%", min(p.Bytes, p.TotalBytes)*100/p.TotalBytes))
		parts = append(parts, images.FormatBytes(p.Bytes)+" of "+images.FormatBytes(p.TotalBytes))
	} else if p.Bytes > 0 {
		parts = append(parts, images.FormatBytes(p.Bytes))
	}
	if p.BytesPerSecond > 0 {
		parts = append(parts, images.FormatBytes(p.BytesPerSecond)+"/s")
		if left := p.TotalBytes - p.Bytes; left > 0 {
			s := (left + p.BytesPerSecond - 1) / p.BytesPerSecond
			parts = append(parts, formatLeft(s)+" left")
		}
	}
	return strings.Join(parts, "  ")
}

func formatLeft(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d:%02d min", seconds/60, seconds%60)
	case seconds < 100*3600:
		return fmt.Sprintf("%d:%02d h", seconds/3600, seconds/60%60)
	}
	return "days"
}

func cutLine(s string, width int) string {
	r := []rune(s)
	return string(r[:max(min(len(r), width), 0)])
}
