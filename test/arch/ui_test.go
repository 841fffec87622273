package arch

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// uiImport finds what a file of the UI imports from another: from './x', import './x' and import('./x').
var uiImport = regexp.MustCompile(`\b(?:from|import)\s*\(?\s*'(\.[^']+)'`)

// uiImports returns the files of the UI, without its tests, each with the files that it imports.
func uiImports(t *testing.T) map[string][]string {
	t.Helper()
	src := os.DirFS(filepath.Join("..", "..", "ui", "src"))
	imports := map[string][]string{}
	err := fs.WalkDir(src, ".", func(name string, d fs.DirEntry, err error) error {
		isCode := strings.HasSuffix(name, ".ts") || strings.HasSuffix(name, ".tsx")
		if err != nil || d.IsDir() || !isCode || strings.Contains(name, ".test.") || strings.HasSuffix(name, ".d.ts") {
			return err
		}
		text, err := fs.ReadFile(src, name)
		if err != nil {
			return err
		}
		imports[name] = nil
		for _, m := range uiImport.FindAllStringSubmatch(string(text), -1) {
			imports[name] = append(imports[name], path.Join(path.Dir(name), m[1]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range imports {
		imports[name] = slices.DeleteFunc(all, func(to string) bool {
			// Styles import nothing; the types of the API and the nouns are generated.
			return strings.HasSuffix(to, ".css") || to == "api/schema" || to == "api/nouns"
		})
		for i, to := range imports[name] {
			switch _, isPlain := imports[to+".ts"]; {
			case isPlain:
				imports[name][i] = to + ".ts"
			default:
				imports[name][i] = to + ".tsx"
			}
			if _, isThere := imports[imports[name][i]]; !isThere {
				t.Errorf("ui/src/%s imports %s, which this test does not find", name, to)
			}
		}
	}
	return imports
}

// circle returns the first way from a node back to itself, in the order of the names; nil where there is none.
func circle(arrows map[string][]string) []string {
	done := map[string]bool{}
	var way []string
	var walk func(at string) []string
	walk = func(at string) []string {
		if i := slices.Index(way, at); i >= 0 {
			return append(slices.Clone(way[i:]), at)
		}
		if done[at] {
			return nil
		}
		way = append(way, at)
		for _, to := range arrows[at] {
			if found := walk(to); found != nil {
				return found
			}
		}
		way = way[:len(way)-1]
		done[at] = true
		return nil
	}
	names := make([]string, 0, len(arrows))
	for name := range arrows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if found := walk(name); found != nil {
			return found
		}
	}
	return nil
}

func TestTheUIHasNoCircleOfImports(t *testing.T) {
	files := uiImports(t)
	if len(files) < 100 {
		t.Fatalf("only %d files of the UI were found", len(files))
	}
	if found := circle(files); found != nil {
		t.Errorf("files of ui/src import each other in a circle: %s", strings.Join(found, " -> "))
	}
	folders := map[string][]string{}
	for name, all := range files {
		for _, to := range all {
			if from, into := path.Dir(name), path.Dir(to); from != into && !slices.Contains(folders[from], into) {
				folders[from] = append(folders[from], into)
			}
		}
	}
	if found := circle(folders); found != nil {
		t.Errorf("folders of ui/src import each other in a circle: %s", strings.Join(found, " -> "))
	}
}

func TestACircleIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		arrows map[string][]string
		want   string
	}{
		"none":      {map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": nil}, ""},
		"two":       {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}, "b -> c -> b"},
		"of itself": {map[string][]string{"a": {"a"}}, "a -> a"},
	} {
		if got := strings.Join(circle(c.arrows), " -> "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
