// Command house prints the rooms of the product from its code: packages with their files, lines, largest types and imports, and
// draws the floors for docs/architecture.md.
//
//	house                 a table of all packages, largest first, and the totals
//	house -draw           the drawing of the floors, as Mermaid
//	house -inside ./web   the arrows between the files of one package, by its types
//
// It reads the sources of the current folder. Code that tools made and tests do not count.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	draw := flag.Bool("draw", false, "print the drawing for docs/architecture.md")
	within := flag.String("inside", "", "print the arrows between the files of this package")
	flag.Parse()
	if err := run(*draw, *within); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(draw bool, within string) error {
	if within != "" {
		return inside(os.Stdout, within)
	}
	rooms, err := read(".")
	if err != nil {
		return err
	}
	if draw {
		drawFloors(os.Stdout, rooms)
		return nil
	}
	table(os.Stdout, rooms)
	return nil
}
