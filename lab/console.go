package lab

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// The escape sequences (ECMA-48) that firmware and GRUB draw their screens with.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?=]*[ -/]*[@-~]|[@-Z\\-_]|[()][A-Z0-9])`)

// cleanConsole makes a serial log readable. It turns escape sequences into line breaks, drops control characters, and
// keeps of an overwritten line, such as a percentage, the last form.
func cleanConsole(b []byte) string {
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	text := escapes.ReplaceAllString(strings.ToValidUTF8(string(b), ""), "\n")
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		lines = append(lines, line[strings.LastIndexByte(line, '\r')+1:])
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < 0x20 || r == 0x7f) {
			return -1
		}
		return r
	}, strings.Join(lines, "\n"))
}

// tailFile returns the last n lines of a file, or nothing.
func tailFile(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return Readable(b, n)
}

// Readable returns the last n lines of a console that are not empty, without control characters.
func Readable(b []byte, n int) string {
	var lines []string
	for _, l := range strings.Split(cleanConsole(b), "\n") {
		if l = strings.TrimRight(l, " \t"); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func say(w io.Writer, format string, args ...any) {
	if w != nil {
		fmt.Fprintf(w, format+"\n", args...)
	}
}
