package appliance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// marks are words that only the text of a licence has; "-" before an expression means that it must not be there.
var marks = map[string][]string{
	"Apache-2.0":   {`Apache License,? Version 2\.0`},
	"MIT":          {`Permission is hereby granted, free of charge`},
	"ISC":          {`Permission to use, copy, modify, and/or distribute`},
	"BSD-2-Clause": {`Redistribution and use in source and binary forms`, `-be used to endorse`},
	"BSD-3-Clause": {`Redistribution and use in source and binary forms`, `be used to endorse`},
}

// licenceFileRE matches the files in which modules have their licences.
var licenceFileRE = regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)

// TestEveryModuleHasItsLicence compares the table with the texts in the module cache. A module that is new needs its line, and
// one that is gone must go.
func TestEveryModuleHasItsLicence(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}`, "../..", "../../../slipway-agent")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(linked)
	linked = slices.Compact(linked)
	if len(linked) < 100 {
		t.Fatalf("go list names %d modules", len(linked))
	}
	for _, line := range linked {
		module, dir, _ := strings.Cut(line, " ")
		licence := licenceOf(module)
		if licence == "" {
			t.Errorf("%s has no licence in licences.go", module)
			continue
		}
		if said := spdxOf(licenceText(t, dir)); said != licence {
			t.Errorf("%s: licences.go says %q, its text %q", module, licence, said)
		}
	}
	for licence, modules := range licencesOf {
		for _, m := range strings.Fields(modules) {
			if !slices.ContainsFunc(linked, func(l string) bool { return strings.HasPrefix(l, m+" ") }) {
				t.Errorf("%s (%s) is not in the program", m, licence)
			}
		}
	}
}

// licenceText returns all texts of licences that a module comes with.
func licenceText(t *testing.T, dir string) (text string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() || !licenceFileRE.MatchString(f.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text += string(b) + "\n"
	}
	return strings.Join(strings.Fields(text), " ")
}

// spdxOf names the licences whose words are in a text.
func spdxOf(text string) string {
	var ids []string
	for id, words := range marks {
		is := true
		for _, w := range words {
			w, not := strings.CutPrefix(w, "-")
			is = is && regexp.MustCompile(`(?i)`+w).MatchString(text) != not
		}
		if is {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return noLicence
	}
	slices.Sort(ids)
	return strings.Join(ids, " AND ")
}

func TestPartsOfTheUIAreTakenFromItsBuild(t *testing.T) {
	parts, err := collectedParts(fstest.MapFS{"licences.json": {Data: []byte(
		`[{"kind":"Go","name":"example.org/a","version":"v1.0.0","licence":"MIT","text":"do"},{"kind":"npm","name":"b","version":"2.0.0","licence":"0BSD","text":""}]`)}})
	if err != nil || len(parts) != 2 || parts[1].Licence != "0BSD" || textOf(parts, "example.org/a") != "do" || textOf(parts, "b") != "" {
		t.Errorf("%+v, %v", parts, err)
	}
	all := withCollected([]part{{Kind: "Go", Name: "example.org/a", Version: "v1.0.0"}}, append(parts, part{Kind: "Go", Name: "example.org/agents", Version: "v2.0.0"}))
	if len(all) != 3 || all[1].URL != "https://pkg.go.dev/example.org/agents@v2.0.0" || !strings.HasSuffix(all[2].URL, "/b/v/2.0.0") {
		t.Errorf("with those of the agent: %+v", all)
	}
	if parts, err := collectedParts(fstest.MapFS{}); err != nil || parts != nil {
		t.Errorf("without a UI: %+v, %v", parts, err)
	}
	if _, err := collectedParts(fstest.MapFS{"licences.json": {Data: []byte(`{`)}}); err == nil {
		t.Error("a list that is cut off is taken")
	}
}
