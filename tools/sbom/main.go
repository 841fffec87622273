// Command sbom completes a bill of materials that cyclonedx-gomod wrote: it adds the npm packages of the web UI and the
// C library that are linked into the program, and the time of the release.
//
//	sbom -time SECONDS [-npm licences.json] [-deb NAME=VERSION] FILE
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// npmPart is a row of the licences.json that the build of the web UI writes.
type npmPart struct{ Kind, Name, Version, Licence string }

func main() {
	at := flag.Int64("time", 0, "time of the release in seconds since 1970")
	npm := flag.String("npm", "", "licences.json of the web UI")
	deb := flag.String("deb", "", "NAME=VERSION of the Debian source package that is linked in")
	flag.Parse()
	if err := run(flag.Arg(0), *at, *npm, *deb); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(file string, at int64, npm, deb string) error {
	if file == "" || at <= 0 {
		return errors.New("needs -time and the file of a bill of materials")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var parts []npmPart
	if npm != "" {
		b, err := os.ReadFile(npm)
		if err == nil {
			err = json.Unmarshal(b, &parts)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", npm, err)
		}
	}
	text, err = complete(text, time.Unix(at, 0), parts, deb)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}

// complete returns a bill with the time and with more components. Keys are written in order of the alphabet.
func complete(bill []byte, at time.Time, npm []npmPart, deb string) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(bill, &doc); err != nil {
		return nil, err
	}
	metadata, isThere := doc["metadata"].(map[string]any)
	components, isList := doc["components"].([]any)
	if !isThere || !isList || len(components) == 0 {
		return nil, errors.New("this is not a bill of materials with metadata and components")
	}
	metadata["timestamp"] = at.UTC().Format(time.RFC3339)
	for _, p := range npm {
		if p.Kind == "npm" {
			components = append(components, component("pkg:npm/"+npmName(p.Name)+"@"+p.Version, p.Name, p.Version, p.Licence))
		}
	}
	if name, version, ok := strings.Cut(deb, "="); ok {
		components = append(components, component("pkg:deb/debian/"+name+"@"+url.QueryEscape(version)+"?arch=source", name, version, "LGPL-2.1-or-later"))
	}
	doc["components"] = components
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
}

// npmName is a name as package URLs write it: the @ of a scope is escaped.
func npmName(name string) string { return strings.Replace(name, "@", "%40", 1) }

func component(purl, name, version, licence string) map[string]any {
	c := map[string]any{"bom-ref": purl, "type": "library", "name": name, "version": version, "scope": "required", "purl": purl}
	if licence != "" {
		c["licenses"] = []any{map[string]any{"license": map[string]any{"name": licence}}}
	}
	return c
}
