// Package images owns operating system images: the OS catalogue, the content-addressed folder of kernels, initrds and
// disks, their import with checksums, and the boot loaders. It never decides what a machine boots and never sends a
// file to one.
//
// Start reading at Entry (what the catalogue knows), then Cache.Import, then Jobs.
package images

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

//go:embed catalogue.yaml
var builtinCatalogue []byte

// catalogueVersion is the form of the catalogue file that this program reads.
const catalogueVersion = 1

// Entry is what the catalogue knows of an operating system and a line of its releases.
type Entry struct {
	OS string `yaml:"os" json:"os"`
	// Releases are the releases of this entry: "12" stands for 12 and 12.anything, "*" for all.
	Releases []string `yaml:"releases" json:"releases"`
	Title    string   `yaml:"title" json:"title"`
	// Arch maps our architectures to the OS's own spelling; others cannot be imported.
	Arch map[inventory.Arch]string `yaml:"arch" json:"arch"`
	// Vars are the entry's own {names} with the values they have unless an import overrides them.
	Vars map[string]string `yaml:"vars" json:"vars,omitempty"`
	// MemoryMiB is the least memory for this way to boot; 0 is unknown.
	MemoryMiB   int  `yaml:"memoryMiB" json:"memoryMiB,omitempty"`
	IsInstaller bool `yaml:"isInstaller" json:"isInstaller"`
	// CPULevel is the least level of an x86-64 processor that the system is built for, such as x86-64-v3.
	CPULevel string `yaml:"cpuLevel" json:"cpuLevel,omitempty"`
	// Base is the http(s) address of the published files, with {names}. If it is "", the import must name the files.
	Base string `yaml:"base" json:"base,omitempty"`
	// Sums is a list of SHA-256 sums below Base: SHA256SUMS, its BSD form, or a .treeinfo.
	Sums string `yaml:"sums" json:"sums,omitempty"`
	// Package is the Debian package that brings the files, and Folder where it puts them.
	Package string `yaml:"package" json:"package,omitempty"`
	Folder  string `yaml:"folder" json:"folder,omitempty"`
	Files   []File `yaml:"files" json:"files,omitempty"`
	// KernelArgs are for every boot. ConfigArgs are added if the machine has a rendered configuration.
	KernelArgs []string `yaml:"kernelArgs" json:"kernelArgs,omitempty"`
	ConfigArgs []string `yaml:"configArgs" json:"configArgs,omitempty"`
	// Parameters are the ${names} in the arguments that a profile must give.
	Parameters []Parameter    `yaml:"parameters" json:"parameters,omitempty"`
	Configs    []ConfigFormat `yaml:"configs" json:"configs,omitempty"`
	// Chain is how it boots with Secure Boot on; nil: not known.
	Chain *Chain `yaml:"chain" json:"chain,omitempty"`
	Notes string `yaml:"notes" json:"notes,omitempty"`

	// Origin is the file and line that the entry was read from.
	Origin string `yaml:"-" json:"origin"`
}

// File is a file of an entry.
type File struct {
	Role inventory.Role `yaml:"role" json:"role"`
	// Name is its name for arguments and boot loader.
	Name string `yaml:"name" json:"name"`
	// Paths are the possible places below Base, best first. The checksum list or the listing of the folder resolves a
	// *.
	Paths []string `yaml:"paths" json:"paths"`
	// IsUnlisted marks a file that the entry's checksum list is known to leave out.
	IsUnlisted bool `yaml:"isUnlisted" json:"isUnlisted,omitempty"`
}

// Parameter is a value that a profile gives to the arguments of an image.
type Parameter struct {
	Name  string `yaml:"name" json:"name"`
	About string `yaml:"about" json:"about"`
}

// ConfigFormat is a format in which the OS reads its configuration. Version is the highest Ignition spec, the lowest
// cloud-init, or another version of the tool that reads it.
type ConfigFormat struct {
	Format  string `yaml:"format" json:"format"`
	Version string `yaml:"version" json:"version"`
	// InitrdPath is where the OS finds the config in an initrd appended to its own; "" if it does not look there.
	InitrdPath string `yaml:"initrdPath" json:"initrdPath,omitempty"`
}

// Catalogue is the OS catalogue in force. It does not change once made.
type Catalogue struct {
	entries []Entry // those that win first
}

// BuiltinCatalogue returns the catalogue that comes with the program.
func BuiltinCatalogue() (*Catalogue, error) {
	entries, err := ReadCatalogue(bytes.NewReader(builtinCatalogue), "built-in catalogue.yaml")
	if err != nil {
		return nil, err
	}
	return &Catalogue{entries: entries}, nil
}

// LoadCatalogue returns the built-in catalogue with an admin's files on top. Where two entries fit an OS and release,
// the entry of the last file wins. One faulty file is an error for all: an admin who overrides an entry must not get
// the built-in one without notice.
func LoadCatalogue(files []string) (*Catalogue, error) {
	c, err := BuiltinCatalogue()
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			e := inventory.Errorf(inventory.Invalid, "catalogue file %s cannot be read: %v", name, errors.Unwrap(err))
			return nil, e.WithHint("check the path given to --catalogue")
		}
		entries, err := ReadCatalogue(bytes.NewReader(b), name)
		if err != nil {
			return nil, err
		}
		c.entries = append(entries, c.entries...)
	}
	return c, nil
}

// Entries returns the entries in the order in which Find searches them.
func (c *Catalogue) Entries() []Entry { return slices.Clone(c.entries) }

// Find returns the entry for an OS and release, and the release pattern by which it fits. Patterns that name a
// release win over "*", wherever their entries are. The error is NotFound, and its hint lists the known releases or
// systems.
func (c *Catalogue) Find(os, release string) (Entry, string, error) {
	var titles []string
	for _, wildcards := range []bool{false, true} {
		for _, e := range c.entries {
			if e.OS != os {
				continue
			}
			for _, pattern := range e.Releases {
				if (pattern == "*") == wildcards && matchRelease(pattern, release) {
					return e, pattern, nil
				}
				if !wildcards && pattern != "*" {
					titles = append(titles, pattern)
				}
			}
		}
	}
	if len(titles) > 0 {
		return Entry{}, "", inventory.Errorf(inventory.NotFound, "the catalogue has no release %q of %s", release, os).
			WithHint("it knows %s; a file with more entries can be given to the server with --catalogue", strings.Join(titles, ", "))
	}
	return Entry{}, "", inventory.Errorf(inventory.NotFound, "the catalogue has no operating system %q", os).
		WithHint("it knows %s; use custom for your own kernel and initrd", strings.Join(c.names(), ", "))
}

func (c *Catalogue) names() []string {
	seen := map[string]bool{}
	for _, e := range c.entries {
		seen[e.OS] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// matchRelease reports whether a release is one of those that the pattern stands for.
func matchRelease(pattern, release string) bool {
	// The dot keeps "1" from matching 12.
	return pattern == "*" && release != "" || release == pattern || strings.HasPrefix(release, pattern+".")
}

// maxCatalogueBytes bounds a catalogue file; the built-in one has about 11,000.
const maxCatalogueBytes = 1 << 20

// ReadCatalogue reads and checks a catalogue file of at most 1 MiB. Unknown keys are errors, so that a typing error
// does not silently drop a kernel argument. An error is Invalid, and names the file and the line.
func ReadCatalogue(r io.Reader, name string) ([]Entry, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxCatalogueBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read catalogue %s: %w", name, err)
	}
	if len(text) > maxCatalogueBytes {
		return nil, inventory.Errorf(inventory.Invalid, "%s is longer than %d bytes", name, maxCatalogueBytes)
	}
	var file struct {
		Version int     `yaml:"version"`
		Entries []Entry `yaml:"entries"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, yamlError(name, err)
	}
	if dec.Decode(new(yaml.Node)) != io.EOF {
		return nil, inventory.Errorf(inventory.Invalid, "%s holds more than one YAML document", name).
			WithHint("remove the line that is ---")
	}
	if file.Version != catalogueVersion {
		return nil, inventory.Errorf(inventory.Invalid, "%s has version %d", name, file.Version).
			WithHint("write version: %d at its top", catalogueVersion)
	}
	lines := entryLines(text)
	seen := map[string]string{}
	for i := range file.Entries {
		e := &file.Entries[i]
		e.Origin = name
		if i < len(lines) {
			e.Origin = fmt.Sprintf("%s:%d", name, lines[i])
		}
		if err := e.check(); err != nil {
			return nil, err
		}
		for _, release := range e.Releases {
			key := e.OS + " " + release
			if seen[key] != "" {
				return nil, inventory.Errorf(inventory.Invalid, "%s: %s is described twice, also at %s", e.Origin, key, seen[key])
			}
			seen[key] = e.Origin
		}
	}
	return file.Entries, nil
}

// goType is how the YAML library names the Go type that a key does not belong to; no reader of a file knows it.
var goType = regexp.MustCompile(`(?s) in type .*`)

// yamlError makes what the YAML reader says fit for people: it already names the lines.
func yamlError(name string, err error) error {
	if errors.Is(err, io.EOF) {
		return inventory.Errorf(inventory.Invalid, "%s is empty", name).
			WithHint("write version: %d and entries: in it", catalogueVersion)
	}
	var t *yaml.TypeError
	text := err.Error()
	if errors.As(err, &t) {
		var lines []string
		for _, line := range t.Errors {
			lines = append(lines, goType.ReplaceAllString(line, ""))
		}
		text = strings.Join(lines, "; ")
	}
	text = strings.TrimPrefix(text, "yaml: ")
	return inventory.Errorf(inventory.Invalid, "%s: %s", name, inventory.Clean(text, 1000)).
		WithHint("docs/images.md lists the fields of a catalogue entry")
}

// entryLines returns the line at which each entry begins.
func entryLines(text []byte) []int {
	var doc struct {
		Entries []yaml.Node `yaml:"entries"`
	}
	if yaml.Unmarshal(text, &doc) != nil {
		return nil
	}
	var lines []int
	for _, n := range doc.Entries {
		lines = append(lines, n.Line)
	}
	return lines
}
