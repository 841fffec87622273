package images

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/images/authenticode"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/sigdb"
)

// Loader is a boot loader in memory, byte for byte as its maker signed it. Nobody changes Data. It stays in memory
// because TFTP sends it in blocks to many hosts at once. A package upgrade must not change a file in the middle of a
// transfer.
type Loader struct {
	Name   string // as machines ask for it
	Type   string // Content-Type
	Data   []byte
	SHA256 inventory.Digest
	Path   string // the file it was read from

	Signers []pxe.Signer // who signed it
	Trusts  []string     // of a shim: the authorities that it accepts besides the firmware's
}

// LoaderProblem says why the server does not serve a name of the table, or serves another file than the admin's.
type LoaderProblem struct {
	Name      string
	Msg, Hint string
	IsMissing bool // false: another file is served under the name
}

// Loaders are the boot loaders that LoadLoaders found. They never change, so that many goroutines may use them. A
// newer file on disk takes a new LoadLoaders.
type Loaders struct {
	byName   map[string]Loader
	trusted  []string // names of the certificates in the folders' trusted.pem
	problems []LoaderProblem
}

// maxLoader is far above any boot loader: iPXE with all drivers has 1 MB, GRUB with its modules 3.
const maxLoader = 16 << 20

// LoadLoaders reads the boot loaders of pxe's table: from the admin's folders in their order, and else from where
// Debian's packages put them. A loader that is missing is no error, see Problems; a folder that does not exist is one
// (Invalid).
func LoadLoaders(dirs []string) (*Loaders, error) {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
		if err != nil {
			return nil, &inventory.Error{
				Kind: inventory.Invalid, Msg: "cannot use the loader folder " + dir + ": " + reason(err),
				Hint: "name an existing folder with --loaders, or none: Debian's packages are found without", Err: err,
			}
		}
	}
	l := &Loaders{byName: map[string]Loader{}}
	for _, row := range pxe.Loaders() {
		l.load(row, dirs)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, pxe.TrustedName)
		data, err := readLoader(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var names []string
		if err == nil {
			names, err = pemNames(data)
		}
		if err != nil {
			l.problems = append(l.problems, LoaderProblem{Name: pxe.TrustedName, Msg: path + " cannot be used: " + reason(err), Hint: "write the certificates in PEM"})
		}
		l.trusted = append(l.trusted, names...)
	}
	return l, nil
}

// load reads the first usable file of a row.
func (l *Loaders) load(row pxe.LoaderName, dirs []string) {
	var paths []string
	for _, dir := range dirs {
		for _, f := range row.Files {
			paths = append(paths, filepath.Join(dir, filepath.FromSlash(f)))
		}
	}
	unusable := 0
	for _, path := range append(paths, row.Debian...) {
		data, err := readLoader(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			l.problems = append(l.problems, LoaderProblem{
				Name: row.Name, Msg: path + " cannot be used: " + reason(err),
				Hint: "put the right file there, or remove it",
			})
			unusable++
			continue
		}
		sum := sha256.Sum256(data)
		found := Loader{Name: row.Name, Type: row.Type, Data: data, SHA256: digestOf(sum[:]), Path: path}
		found.Signers, _ = authenticode.Signers(bytes.NewReader(data), int64(len(data)))
		if strings.Contains(row.Name, "shim") {
			found.Trusts = authenticode.Trusts(data)
		}
		l.byName[row.Name] = found
		return
	}
	for i := len(l.problems) - unusable; i < len(l.problems); i++ {
		l.problems[i].IsMissing = true
	}
	if unusable == 0 {
		l.problems = append(l.problems, LoaderProblem{Name: row.Name, Msg: row.Name + " is not installed", Hint: installHint(row), IsMissing: true})
	}
}

func installHint(row pxe.LoaderName) string {
	if row.Package == "" {
		return "put it into a folder named with --loaders as " + row.Files[0] + "; Debian has no package of it"
	}
	return "apt-get install " + row.Package + ", or put it into a folder named with --loaders"
}

func readLoader(path string) ([]byte, error) {
	info, err := os.Stat(path) // before opening: opening a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() == 0:
		return nil, errors.New("it is empty")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLoader+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxLoader {
		return nil, fmt.Errorf("it is larger than %d MiB", maxLoader>>20)
	}
	return data, nil
}

// reason returns an error without the path, which the message around it has already.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// Find returns the loader that is served under a name.
func (l *Loaders) Find(name string) (Loader, bool) {
	found, ok := l.byName[name]
	return found, ok
}

// Has reports whether a loader is served under a name.
func (l *Loaders) Has(name string) bool {
	_, ok := l.byName[name]
	return ok
}

// IsSigned reports whether a loader carries a signature. It does not verify it: the firmware decides which keys it
// trusts.
func (l *Loaders) IsSigned(name string) bool { return len(l.byName[name].Signers) > 0 }

// Signers returns the authors of a loader's signatures, nil for none.
func (l *Loaders) Signers(name string) []pxe.Signer { return l.byName[name].Signers }

// Trusts returns the authorities that a shim accepts. For pxe.TrustedName it returns the names of the site's own
// certificates.
func (l *Loaders) Trusts(name string) []string {
	if name == pxe.TrustedName {
		return l.trusted
	}
	return l.byName[name].Trusts
}

// Names returns the names that are served, in the order of pxe's table.
func (l *Loaders) Names() []string {
	var names []string
	for _, row := range pxe.Loaders() {
		if l.Has(row.Name) {
			names = append(names, row.Name)
		}
	}
	return names
}

// Problems returns what is missing or unusable, with the Debian package that has it.
func (l *Loaders) Problems() []LoaderProblem { return slices.Clone(l.problems) }

// pemNames returns the names of the certificates in a PEM file.
func pemNames(data []byte) (names []string, err error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return names, nil
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate in it cannot be read")
		}
		names = append(names, sigdb.Name(c.Subject))
	}
}
