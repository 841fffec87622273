package newcomer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/inventory"
)

// Options are what an admin says on the new machine.
type Options struct {
	Addresses      []string // of instances, each with a port
	Code           invite.Code
	Name           string   // of the new instance; "" leaves it to the invitation, and then to the name of the machine
	Config         string   // the configuration file, which need not exist
	DataDir        string   // "" is that of the configuration file
	InstanceListen string   // where the other instances ask the new one; "" is as they have it
	Interfaces     []string // where machines boot; none: those in the networks of the other instance
	Version        string   // of this program
	Now            func() time.Time
}

// config is the configuration file that the machine had before.
type config struct {
	path  string
	text  []byte // nil if there is none
	keys  map[string]any
	value serve.Config
}

// maxConfig bounds what is read of a file; serve reads as much.
const maxConfig = 1 << 20

// readConfig reads the configuration file. It may be missing.
func readConfig(path string) (*config, error) {
	c := &config{path: path, value: serve.Default()}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid,
			"cannot read the configuration: %w", err).WithHint("name another file with --config")
	}
	c.text = text
	if c.value, err = serve.ParseSettings(text); err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s: %w", path, err).WithHint("%s", inventory.HintOf(err))
	}
	if err := yaml.Unmarshal(text, &c.keys); err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s: %w", filepath.Base(path), err)
	}
	return c, nil
}

// has reports whether the file has a key.
func (c *config) has(key string) bool { _, ok := c.keys[key]; return ok }

func (c *config) dataDir(flag string) string { return cmp.Or(flag, c.value.DataDir) }

// plan is what a join writes beside secret.key.
type plan struct {
	config string       // path of the configuration file
	text   []byte       // what it shall have; nil: it has all of it
	want   serve.Config // what it then says
	files  map[string]invite.File
	paths  map[string]string // where these files shall be
	// passwordPath is where the password of the database shall be, "" if it has none.
	password, passwordPath string
}

// passwordFile is next to the configuration file.
const passwordFile = "database-password"

// makePlan decides what the files have to say. A configuration file that says something else is left alone: the error lists what.
func makePlan(had *config, h invite.HandOver, o Options, dataDir string) (*plan, error) {
	want, err := serve.ParseSettings([]byte(h.Settings))
	if err != nil {
		return nil, inventory.Errorf(inventory.Conflict, "the settings of the other instance cannot be read: %w", err).
			WithHint("install the version of that instance here: %s", inventory.Clean(h.Version, 40))
	}
	p := &plan{config: had.path, files: map[string]invite.File{}, paths: map[string]string{}, password: h.Password}
	if err := p.place(want.SharedFiles(), had, h.Files); err != nil {
		return nil, err
	}
	want = want.WithFiles(p.paths)
	own := had.value
	want.DataDir, want.Instance = dataDir, h.Name
	want.InstanceListen = cmp.Or(o.InstanceListen, given(had, "instanceListen", own.InstanceListen), h.InstanceListen, want.InstanceListen)
	want.AdminListen = cmp.Or(given(had, "adminListen", own.AdminListen), h.AdminListen, want.AdminListen)
	want.AdminTLSCert, want.AdminTLSKey, want.Loaders, want.Kubeconfig = own.AdminTLSCert, own.AdminTLSKey, own.Loaders, own.Kubeconfig
	want.Range, want.LogLevel, want.LogFormat = own.Range, own.LogLevel, own.LogFormat
	if want.Interfaces, err = interfaces(o.Interfaces, own.Interfaces, h.Networks); err != nil {
		return nil, err
	}
	if h.Password != "" {
		p.passwordPath = cmp.Or(own.DatabasePasswordFile, filepath.Join(filepath.Dir(had.path), passwordFile))
		if err := mayWrite(p.passwordPath, []byte(h.Password+"\n")); err != nil {
			return nil, err
		}
		want.DatabasePasswordFile = p.passwordPath
	}
	p.want = want
	p.text, err = merged(had, &want)
	return p, err
}

// given returns the value of a key that the file has, else "".
func given(had *config, key, value string) string {
	if had.has(key) {
		return value
	}
	return ""
}

// place decides where the files go that settings name. A file that the configuration names already, and that is the same, stays.
func (p *plan) place(wanted map[string]string, had *config, files []invite.File) error {
	for _, f := range files {
		if _, ok := wanted[f.Name]; ok && len(f.Data) <= invite.MostFile {
			p.files[f.Name] = f
		}
	}
	own := had.value.SharedFiles()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		f, ok := p.files[name]
		if !ok {
			return inventory.Errorf(inventory.Conflict, "the settings of the other instance name the file %s, which it has not sent", name).
				WithHint("install the version of that instance here")
		}
		if path := own[name]; path != "" && isSame(path, f.Data) {
			p.paths[name] = path
			continue
		}
		p.paths[name] = filepath.Join(filepath.Dir(had.path), name)
		if err := mayWrite(p.paths[name], f.Data); err != nil {
			return err
		}
	}
	return nil
}

// interfaces chooses the network interfaces on which machines boot.
func interfaces(asked, had []string, networks []netip.Prefix) ([]string, error) {
	if len(asked) > 0 || len(had) > 0 {
		if len(asked) > 0 {
			return asked, nil
		}
		return had, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var found, names []string
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		names = append(names, i.Name)
		addrs, _ := i.Addrs() // one that has just gone has none
		if slices.ContainsFunc(addrs, func(a net.Addr) bool {
			at, err := netip.ParsePrefix(a.String())
			return err == nil && slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(at.Addr()) })
		}) {
			found = append(found, i.Name)
		}
	}
	if len(found) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "no interface of this machine has an address in a network of the other instance").
			WithHint("name those on which machines boot with --interface; this machine has: %s", strings.Join(names, " "))
	}
	return found, nil
}

// merged returns the text of the configuration file, nil if the file says all already. Missing keys come at the end. No line is changed: an
// admin may have a reason for it.
func merged(had *config, want *serve.Config) ([]byte, error) {
	is, err := had.value.Values()
	if err != nil {
		return nil, err
	}
	shall, err := want.Values()
	if err != nil {
		return nil, err
	}
	add, conflicts := map[string]any{}, []string{}
	union := maps.Clone(is)
	maps.Copy(union, shall)
	for _, key := range slices.Sorted(maps.Keys(union)) {
		switch {
		case reflect.DeepEqual(is[key], shall[key]):
		case had.has(key):
			conflicts = append(conflicts, fmt.Sprintf("%s is %s, and has to be %s", key, said(is[key]), said(shall[key])))
		default:
			add[key] = shall[key]
		}
	}
	if len(conflicts) > 0 {
		return nil, inventory.Errorf(inventory.Conflict,
			"%s says something else than the other instances: %s", had.path, strings.Join(conflicts, "; ")).
			WithHint("change these lines, and start the command again; or name another file with --config. The code stays good for " +
				"this machine")
	}
	if len(add) == 0 && had.text != nil {
		return nil, nil
	}
	lines, err := yaml.Marshal(add)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	text := bytes.Clone(had.text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	text = append(text, "# slipway instance join has written these lines; docs/configuration.md has all keys.\n"...)
	text = append(text, lines...)
	return text, hasAll(had.path, text, shall)
}

// hasAll refuses a configuration file that lacks a setting after lines were added at its end. In some forms of YAML they do
// not count.
func hasAll(path string, text []byte, shall map[string]any) error {
	c, err := serve.ParseSettings(text)
	is, failed := c.Values()
	if err == nil && failed == nil && len(text) <= maxConfig && reflect.DeepEqual(is, shall) {
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "no lines can be added at the end of %s", path).
		WithHint("write one key on each line; or name another file with --config. The code stays good for this machine")
}

// said is a value of a setting as a message shows it. The address of the database has no password here.
func said(v any) string {
	if v == nil {
		return "the default"
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return "another"
	}
	return inventory.Clean(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " "), 120)
}

// write writes the files of a plan. The configuration comes last: a server that has it finds all others.
func (p *plan) write(w *writer) {
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		w.file(p.paths[name], p.files[name].Data, secret)
	}
	if p.passwordPath != "" {
		w.file(p.passwordPath, []byte(p.password+"\n"), secret)
	}
	if p.text == nil {
		w.kept = append(w.kept, p.config)
		return
	}
	w.file(p.config, p.text, 0o644)
}
