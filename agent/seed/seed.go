// Package seed owns the place of a configuration on a disk with a new image: NoCloud for cloud-init, a config for Ignition,
// or plain files. It never chooses a disk, and never lets a document into a log or an error.
package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write/fetch"
	"slipway.dev/slipway/inventory"
)

const (
	maxDocument  = 4 << 20
	maxDocuments = 32
	// noCloudDir is where cloud-init looks for a seed on the root file system.
	noCloudDir = "var/lib/cloud/seed/nocloud"
	// ignitionDir and firstBoot are in the file system "boot" of CoreOS.
	ignitionDir = "ignition"
	firstBoot   = "ignition.firstboot"
	// seedBytes is the size of a partition for a seed.
	seedBytes = 8 << 20
	seedLabel = "CIDATA"
)

// Config is what placing a seed needs.
type Config struct {
	Tree       disk.Tree
	Client     *http.Client
	LoadModule func(name string) error                          // may be nil
	Wait       func(ctx context.Context, d time.Duration) error // between tries to fetch; may be nil
	MountDir   string                                           // /run/slipway when empty
}

// Place fetches the documents and writes them to the disk. It returns in words where they are.
func Place(ctx context.Context, c Config, name string, s wire.Seed) (string, error) {
	if s.Kind == "" {
		return "", nil
	}
	docs, err := c.fetch(ctx, s.Documents, s.Elsewhere)
	if err != nil {
		return "", err
	}
	switch s.Kind {
	case wire.SeedNoCloud:
		return c.noCloud(ctx, name, s, docs)
	case wire.SeedIgnition:
		return c.ignition(ctx, name, s, docs)
	case wire.SeedFiles:
		return c.files(ctx, name, s, docs)
	}
	return "", inventory.Errorf(inventory.Invalid, "a seed of the kind %q is not known", inventory.Clean(s.Kind, 40)).
		WithHint("build a newer agent image: slipway agent-image build")
}

// fetch gets each document once.
func (c Config) fetch(ctx context.Context, urls map[string]string, elsewhere map[string][]string) (map[string][]byte, error) {
	if len(urls) == 0 || len(urls) > maxDocuments {
		return nil, inventory.Errorf(inventory.Invalid, "a seed has %d documents; 1 to %d are allowed", len(urls), maxDocuments)
	}
	docs := make(map[string][]byte)
	for name, url := range urls {
		if name != path.Clean(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") || name == "." || inventory.CheckText("name", name, 200) != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%q is not a name for a document", inventory.Clean(name, 200))
		}
		source := &fetch.Source{Client: c.Client, URL: url, Elsewhere: elsewhere[name], Name: "the document " + name, Wait: c.Wait}
		b, err := source.Document(ctx, maxDocument)
		if err != nil {
			return nil, err
		}
		docs[name] = b
	}
	return docs, nil
}

// noCloud prefers a seed partition that the image brings, then the root file system, then a new partition at the end of
// the disk.
func (c Config) noCloud(ctx context.Context, name string, s wire.Seed, docs map[string][]byte) (string, error) {
	for _, must := range []string{"user-data", "meta-data"} { // cloud-init takes no seed without both
		if docs[must] == nil {
			docs[must] = []byte{}
		}
	}
	all, err := c.volumes(ctx, name)
	if err != nil {
		return "", err
	}
	label := cmp.Or(s.Label, seedLabel)
	if v, ok := byLabel(all, label); ok {
		if err := c.into(v, "", docs); err == nil || s.Label != "" {
			return "the file system labelled " + v.label, err
		}
	}
	m, v, err := c.findRoot(all, false)
	if err == nil {
		where, why := c.intoRoot(m, v, docs)
		if cerr := m.close(); why == nil && cerr != nil {
			why = cerr
		}
		if why == nil {
			return where, nil
		}
		err = why
	}
	if perr := c.addPartition(ctx, name, docs); perr != nil {
		return "", inventory.Errorf(inventory.Invalid, "there is no place for the seed: %s; and %s", text(err), text(perr)).
			WithHint("give the image a small partition labelled CIDATA, or leave room at the end of the disk")
	}
	return "a new partition labelled CIDATA", nil
}

func text(err error) string {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return e.Msg
	}
	return inventory.Clean(err.Error(), 300)
}

// intoRoot writes to the root file system, if what is below /var is going to be found there.
func (c Config) intoRoot(m *mounted, v volume, docs map[string][]byte) (string, error) {
	if m.has("ostree") {
		return "", inventory.Errorf(inventory.Invalid, "the root file system is of OSTree, which keeps /var elsewhere")
	}
	if point := separateVar(m); point != "" {
		return "", inventory.Errorf(inventory.Invalid, "%s is a file system of its own", point)
	}
	for doc, content := range docs {
		if err := m.write(path.Join(noCloudDir, doc), content); err != nil {
			return "", fmt.Errorf("write the seed: %w", err)
		}
	}
	return fmt.Sprintf("/%s of the root file system (%s, %s)", noCloudDir, deviceName(v), v.kind), nil
}

func deviceName(v volume) string { return v.device[strings.LastIndexByte(v.device, '/')+1:] }

// separateVar returns the mount point that would hide the seed, by the system's fstab.
func separateVar(m *mounted) string {
	b, err := m.root.ReadFile("etc/fstab")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) >= 3 && !strings.HasPrefix(f[0], "#") && slices.Contains([]string{"/var", "/var/lib", "/var/lib/cloud"}, f[1]) {
			return f[1]
		}
	}
	return ""
}

// into writes documents into a folder of a file system.
func (c Config) into(v volume, folder string, docs map[string][]byte) error {
	m, err := c.mount(v.device, v.kind, false)
	if err != nil {
		return err
	}
	for doc, content := range docs {
		if err = m.write(path.Join(folder, doc), content); err != nil {
			err = fmt.Errorf("write %s: %w", doc, err)
			break
		}
	}
	// CoreOS runs Ignition while this file is there; one that is there may hold arguments for that boot.
	if err == nil && folder == ignitionDir && !m.has(firstBoot) {
		err = m.write(firstBoot, nil)
	}
	if cerr := m.close(); err == nil {
		err = cerr
	}
	return err
}

// ignition writes where the system's own Ignition looks. Fedora CoreOS: ignition/config.ign of the file system "boot",
// next to the file that marks the first boot. Flatcar: config.ign of the file system "OEM".
func (c Config) ignition(ctx context.Context, name string, s wire.Seed, docs map[string][]byte) (string, error) {
	all, err := c.volumes(ctx, name)
	if err != nil {
		return "", err
	}
	labels := []string{"OEM", "boot"} // Flatcar has no file system called boot, and CoreOS none called OEM
	if s.Label != "" {
		labels = []string{s.Label}
	}
	for _, label := range labels {
		v, ok := byLabel(all, label)
		if !ok {
			continue
		}
		folder := s.Folder
		if strings.EqualFold(label, "boot") {
			folder = cmp.Or(folder, ignitionDir)
		}
		if err := c.into(v, folder, docs); err != nil {
			return "", err
		}
		return fmt.Sprintf("/%s of the file system labelled %s", folder, v.label), nil
	}
	return "", inventory.Errorf(inventory.Invalid, "the image has no file system labelled %s, where Ignition looks for its config", strings.Join(labels, " or ")).
		WithHint("is it an image of Fedora CoreOS or Flatcar? else name the label in the image's description")
}

func (c Config) files(ctx context.Context, name string, s wire.Seed, docs map[string][]byte) (string, error) {
	all, err := c.volumes(ctx, name)
	if err != nil {
		return "", err
	}
	if s.Label != "" {
		v, ok := byLabel(all, s.Label)
		if !ok {
			return "", inventory.Errorf(inventory.Invalid, "the image has no file system labelled %s", inventory.Clean(s.Label, 64))
		}
		return "/" + strings.Trim(s.Folder, "/") + " of the file system labelled " + v.label, c.into(v, s.Folder, docs)
	}
	m, v, err := c.findRoot(all, false)
	if err != nil {
		return "", err
	}
	for doc, content := range docs {
		if err = m.write(path.Join(s.Folder, doc), content); err != nil {
			break
		}
	}
	if cerr := m.close(); err == nil {
		err = cerr
	}
	return fmt.Sprintf("/%s of the root file system (%s, %s)", strings.Trim(s.Folder, "/"), deviceName(v), v.kind), err
}
