package layer

import (
	"os"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/docschema"
)

// TestEveryListOfThingsHasItsKeys fails when a list is added to Config without saying how layers merge it.
func TestEveryListOfThingsHasItsKeys(t *testing.T) {
	n := 0
	var walk func(s *shape, path string)
	walk = func(s *shape, path string) {
		if s.kind == 0 {
			t.Errorf("%s has a type that layers cannot say", path)
		}
		if s.kind == keyedKind {
			n++
			if len(s.keys) == 0 {
				t.Errorf("%s has no keys; add them to listKeys", path)
			}
			for _, k := range s.keys {
				if s.elem.byName[k] == nil {
					t.Errorf("%s has no field %s, which is to name its items", path, k)
				}
			}
		}
		for _, f := range s.fields {
			if f.name == "" {
				t.Errorf("%s has a field without a yaml tag", path)
			}
			walk(f.shape, path+"/"+f.name)
		}
		if s.elem != nil {
			walk(s.elem, path+"/*")
		}
	}
	walk(configShape, "")
	if n < 20 {
		t.Errorf("only %d lists of things were found", n)
	}
	for typ, names := range groups {
		s := newShape(typ)
		for _, name := range names {
			if f := s.byName[name]; f == nil || f.group != 1 {
				t.Errorf("%s has no field %s in its group", typ, name)
			}
		}
	}
}

func TestNearestFindsTypingErrors(t *testing.T) {
	words := configShape.byName["users"].shape.elem.names()
	for typed, meant := range map[string]string{
		"nmae": "name", "sshkeys": "sshKeys", "ssh_keys": "sshKeys", "ssh-keys": "sshKeys", "shel": "shell", "passwordhash": "passwordHash",
		"lockpasswd": "lockPassword", "sudoo": "sudo", "xyzzy": "", "": "",
	} {
		if got := docschema.NearestKey(typed, words); got != meant {
			t.Errorf("%q: %q; want %q", typed, got, meant)
		}
	}
	if !slices.Contains(words, "sshKeys") {
		t.Error("users have no sshKeys")
	}
}

// TestTheDocsNameEveryKey keeps docs/machine-config.md complete.
func TestTheDocsNameEveryKey(t *testing.T) {
	raw, err := os.ReadFile("../../docs/machine-config.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	var walk func(s *shape, path string)
	walk = func(s *shape, path string) {
		for _, f := range s.fields {
			if !strings.Contains(text, f.name) {
				t.Errorf("the docs do not name %s/%s", path, f.name)
			}
			walk(f.shape, path+"/"+f.name)
		}
		if s.elem != nil {
			walk(s.elem, path)
		}
	}
	walk(configShape, "")
}
