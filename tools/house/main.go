// Command house prints the rooms of the product from its code: packages with their files, lines, largest types and imports, and
// draws the floors for docs/architecture.md.
//
//	house                 a table of all packages, largest first, and the totals
//	house -write FILE     put the drawing of the floors between the marks in a page
//	house -check FILE     fail when the drawing in a page is not that of the code
//	house -inside ./web   the arrows between the files of one package, by its types
//	house -circles        fail when a package has more circles of files than its debt in circles.go
//
// It reads the sources of the current folder. Code that tools made and tests do not count.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	write := flag.String("write", "", "write the drawing into this page")
	check := flag.String("check", "", "compare the drawing in this page")
	within := flag.String("inside", "", "print the arrows between the files of this package")
	round := flag.Bool("circles", false, "check the circles of files in packages")
	flag.Parse()
	if *round {
		if err := checkCircles(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(*write, *check, *within); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(write, check, within string) error {
	if within != "" {
		return inside(os.Stdout, within)
	}
	rooms, err := read(".")
	if err != nil {
		return err
	}
	if page := write + check; page != "" {
		return keep(page, rooms, check != "")
	}
	table(os.Stdout, rooms)
	return nil
}

// The drawing stands between these marks in a page.
var begin, end = []byte("<!-- house: made by make house -->\n"), []byte("<!-- house: end -->\n")

// keep puts the drawing into a page, or compares it with what stands there.
func keep(page string, rooms map[string]*room, isCheck bool) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, begin)
	_, after, isEnded := bytes.Cut(rest, end)
	if !ok || !isEnded {
		return fmt.Errorf("%s has no marks for the drawing", page)
	}
	var drawing bytes.Buffer
	drawFloors(&drawing, rooms)
	anew := bytes.Join([][]byte{before, begin, drawing.Bytes(), end, after}, nil)
	if bytes.Equal(anew, old) {
		return nil
	}
	if isCheck {
		return fmt.Errorf("the drawing in %s is not that of the code: make house", page)
	}
	return os.WriteFile(page, anew, 0o644)
}
