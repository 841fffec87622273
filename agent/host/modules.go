package host

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// maxModule bounds an unpacked module; the largest of Debian's have about 10 MB.
const maxModule = 128 << 20

// Modules are the kernel modules of the RAM disk. Several goroutines may use them. mu is held while a module loads: two that
// need the same one must not insert it at once.
type Modules struct {
	folder string
	index  *index
	log    *slog.Logger
	insert func(file string) error // tests put their own here

	mu    sync.Mutex
	state map[string]error // of modules that were tried
	busy  map[string]bool  // modules whose soft dependencies load has followed
}

// OpenModules reads what depmod wrote in a folder such as /lib/modules/6.1.0. Without modules.dep there are no modules,
// which is right for a kernel that has everything built in.
func OpenModules(folder string, log *slog.Logger) (*Modules, error) {
	var texts [4][]byte
	for i, name := range []string{"modules.dep", "modules.alias", "modules.builtin", "modules.softdep"} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		texts[i] = b
	}
	m := &Modules{folder: folder, index: newIndex(texts[0], texts[1], texts[2], texts[3]), log: log, state: make(map[string]error), busy: make(map[string]bool)}
	m.insert = insert
	return m, nil
}

// Count returns how many modules there are.
func (m *Modules) Count() int { return len(m.index.files) }

// Load loads a module by name, or all that an alias such as fs-vfat stands for, with what they need. A module that is
// built in or loaded is no error; one that is not there is NotFound.
func (m *Modules) Load(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has(canonical(name)) {
		return m.load(canonical(name))
	}
	matches := m.index.match(name)
	if len(matches) == 0 {
		return inventory.Errorf(inventory.NotFound, "the image has no kernel module %s", inventory.Clean(name, 100)).
			WithHint("add it: slipway agent-image build --include %s", inventory.Clean(name, 100))
	}
	var errs []error
	for _, one := range matches {
		errs = append(errs, m.load(one))
	}
	return errors.Join(errs...)
}

// Match returns the modules that would drive a device.
func (m *Modules) Match(modalias string) []string { return m.index.match(modalias) }

func (m *Modules) has(name string) bool { return m.index.builtin[name] || m.index.files[name] != "" }

// load loads a module after the modules that it needs. Softly needed ones may be absent. The caller holds mu.
func (m *Modules) load(name string) error {
	if err, ok := m.state[name]; ok || m.index.builtin[name] {
		return err
	}
	file := m.index.files[name]
	if file == "" {
		return inventory.Errorf(inventory.NotFound, "the image has no kernel module %s", name)
	}
	m.busy[name] = true // soft dependencies may go round in circles
	for _, soft := range m.index.before[name] {
		if c := canonical(soft); !m.busy[c] && m.has(c) {
			if err := m.load(c); err != nil {
				m.log.Debug("a softly needed module is not loaded", "module", c, "err", err)
			}
		}
	}
	// modules.dep lists the needed modules so that the last one has to be loaded first.
	for _, need := range slices.Backward(m.index.needs[name]) {
		if err := m.put(moduleName(need), need); err != nil {
			m.state[name] = err
			return err
		}
	}
	return m.put(name, file)
}

// put inserts one file, once. It also keeps a failure: a module that has no hardware would be tried again for each device that
// names it. The caller holds mu.
func (m *Modules) put(name, file string) error {
	if err, ok := m.state[name]; ok {
		return err
	}
	began := time.Now()
	err := m.insert(filepath.Join(m.folder, file))
	m.log.Debug("module", "name", name, "for", time.Since(began).Round(time.Millisecond))
	switch {
	case errors.Is(err, unix.EEXIST):
		err = nil
	case err != nil:
		err = fmt.Errorf("load module %s: %w", name, err)
	}
	m.state[name] = err
	return err
}

// insert gives a module to the kernel.
func insert(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if strings.HasSuffix(file, ".ko") {
		// The kernel reads a plain module from its file. It cannot unpack one before Linux 5.17, and after that only in the
		// format that it was built for: a compressed module goes to it as bytes.
		return unix.FinitModule(int(f.Fd()), "", 0)
	}
	image, err := unpack(file, f)
	if err != nil {
		return err
	}
	return unix.InitModule(image, "")
}

// unpack reads a compressed module.
func unpack(name string, r io.Reader) ([]byte, error) {
	switch filepath.Ext(name) {
	case ".xz":
		x, err := xz.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = x
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxModule), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	case ".gz":
		g, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = g
	default:
		return nil, fmt.Errorf("%s is no kernel module", filepath.Base(name))
	}
	var image bytes.Buffer
	n, err := io.Copy(&image, io.LimitReader(r, maxModule+1))
	if err != nil {
		return nil, err
	}
	if n > maxModule {
		return nil, fmt.Errorf("%s has more than %d bytes unpacked", filepath.Base(name), maxModule)
	}
	return image.Bytes(), nil
}
