package machineconfig

import (
	"maps"
	"slices"
	"strings"
	"text/template"
)

// Named is one place in a configuration that refers to a secret or a join target by its name.
type Named struct {
	Path string // JSON pointer into Config; "" for the profile's own document
	Ref  string // secret://NAME, secret://NAME#KEY, or join://TARGET
	// IsComputed says that a template made the name of what else it reads.
	IsComputed bool
}

// Names returns what the fields of a configuration refer to. Names in templates come from Expand. It has each field that
// decides what a bootstrapper outputs, with its path: a caller that sets one of these has named the target.
func (c *Config) Names() (all []Named) {
	add := func(path, ref string) {
		if strings.HasPrefix(ref, "secret://") || strings.HasPrefix(ref, "join://") {
			all = append(all, Named{Path: path, Ref: ref})
		}
	}
	for _, u := range c.Users {
		add(pointer("/users", u.Name)+"/passwordHash", u.PasswordHash)
	}
	for _, f := range c.Files {
		add(pointer("/files", f.Path)+"/secret", f.Secret)
	}
	for _, l := range c.Storage.LUKS {
		add(pointer("/storage/luks", l.Name)+"/key", l.Key)
	}
	if d := c.DefaultUser; d != nil {
		add("/defaultUser/passwordHash", d.PasswordHash)
	}
	for _, m := range c.Storage.Mounts {
		add(pointer("/storage/mounts", m.MountPoint)+"/password", m.Password)
	}
	for _, w := range c.Network.WireGuards {
		at := pointer("/network/wireguards", w.Name)
		add(at+"/privateKey", w.PrivateKey)
		for _, p := range w.Peers {
			add(pointer(at+"/peers", p.PublicKey)+"/presharedKey", p.PresharedKey)
		}
	}
	b := c.Bootstrap
	if b == nil {
		return all
	}
	for _, path := range c.bootstrapPaths() {
		if b.Secret != "" {
			add(path, "secret://"+strings.TrimPrefix(b.Secret, "secret://"))
		}
		if b.Target != "" {
			add(path, "join://"+b.Target)
		}
	}
	return all
}

// bootstrapPaths are those that decide which credentials a bootstrapper gives out, and for whom.
func (c *Config) bootstrapPaths() (paths []string) {
	for _, p := range []string{"kind", "target", "role", "secret", "secretFormat", "nodeName"} {
		if _, ok := c.Provenance["/bootstrap/"+p]; ok {
			paths = append(paths, "/bootstrap/"+p)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.Provenance)) {
		if strings.HasPrefix(k, "/bootstrap/options/") {
			paths = append(paths, k)
		}
	}
	if len(paths) == 0 {
		return []string{"/bootstrap"}
	}
	return paths
}

// NamesIn returns what a layer's text refers to, as far as the text shows it. Names that a template computes are known only
// after Expand. A text that cannot be read refers to nothing.
func NamesIn(text string) []Named {
	layer, report := Parse(text, "layer")
	if report.HasErrors() {
		return nil
	}
	c, _ := Merge(layer)
	all := c.Names()
	in := func(path, text string) {
		for _, n := range NamesInTemplate(text) {
			n.Path = path
			all = append(all, n)
		}
	}
	for _, f := range c.Files {
		in(pointer("/files", f.Path)+"/text", f.Text)
	}
	for _, u := range c.Units {
		in(pointer("/units", u.Name)+"/contents", u.Contents)
		for _, d := range u.DropIns {
			in(pointer("/units", u.Name)+"/dropIns", d.Contents)
		}
	}
	for _, cmd := range c.Commands {
		in("/commands", cmd.Shell)
	}
	for _, script := range c.Scripts {
		in(pointer("/scripts", script.Name)+"/text", script.Text)
	}
	for _, k := range sortedKeys(c.Host.MetaData) {
		in(pointer("/host/metaData", k), c.Host.MetaData[k])
	}
	return all
}

// NamesInTemplate returns the secrets whose names are quoted in a template, whether the template reads them or not.
func NamesInTemplate(text string) (all []Named) {
	if !strings.Contains(text, "{{") || len(text) > maxTemplateBytes || actionBytes(text) > maxActionBytes {
		return nil
	}
	x := newExpander(Vars{})
	t, err := template.New(templateName).Funcs(x.funcs).Parse(text)
	if err != nil || t.Tree == nil || t.Root == nil {
		return nil
	}
	w := &treeWalker{tree: t.Tree}
	w.walk(t.Root, 0)
	for _, name := range w.names {
		if isSecretName(name) {
			all = append(all, Named{Ref: "secret://" + name})
		}
	}
	return all
}
