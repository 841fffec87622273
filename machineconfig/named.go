package machineconfig

import (
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig/pointer"
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
		add(pointer.Add("/users", u.Name)+"/passwordHash", u.PasswordHash)
	}
	for _, f := range c.Files {
		add(pointer.Add("/files", f.Path)+"/secret", f.Secret)
	}
	for _, l := range c.Storage.LUKS {
		add(pointer.Add("/storage/luks", l.Name)+"/key", l.Key)
	}
	if d := c.DefaultUser; d != nil {
		add("/defaultUser/passwordHash", d.PasswordHash)
	}
	for _, m := range c.Storage.Mounts {
		add(pointer.Add("/storage/mounts", m.MountPoint)+"/password", m.Password)
	}
	for _, w := range c.Network.WireGuards {
		at := pointer.Add("/network/wireguards", w.Name)
		add(at+"/privateKey", w.PrivateKey)
		for _, p := range w.Peers {
			add(pointer.Add(at+"/peers", p.PublicKey)+"/presharedKey", p.PresharedKey)
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
