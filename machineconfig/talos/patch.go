package talos

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// patcher merges a Config into a plain machine configuration. What the Config says wins over the document; lists of
// interfaces, files, modules and kernel arguments are added to.
type patcher struct {
	docs *documents
	c    *machineconfig.Config
	r    *machineconfig.Report
}

func (p *patcher) apply() {
	p.hostname()
	p.network()
	p.time()
	p.kernel()
	p.install()
	p.files()
	p.node()
	addTrust(p.docs, p.c.Trust.CAs)
}

// at returns the map at a path below the main document, making it; nil, with a finding, if something else is there.
func (p *patcher) at(kind yaml.Kind, keys ...string) *yaml.Node {
	n := p.docs.main
	for i, key := range keys {
		want := yaml.MappingNode
		if i == len(keys)-1 {
			want = kind
		}
		var err error
		if n, err = child(n, key, want); err != nil {
			p.r.Errorf("/document", "invalid", "the machine configuration cannot be merged into: %v", err)
			return &yaml.Node{Kind: kind}
		}
	}
	return n
}

// in returns a map of another document in the same way.
func (p *patcher) in(doc *yaml.Node, key string) *yaml.Node {
	n, err := child(doc, key, yaml.MappingNode)
	if err != nil {
		p.r.Errorf("/document", "invalid", "the machine configuration cannot be merged into: %v", err)
		return &yaml.Node{Kind: yaml.MappingNode}
	}
	return n
}

// hostname goes into the document that rules it: Talos refuses one that is set twice.
func (p *patcher) hostname() {
	name := p.c.Host.FQDN()
	if p.c.Host.Hostname == "" {
		return
	}
	if doc := p.docs.kind("HostnameConfig"); doc != nil {
		drop(doc, "auto")
		put(doc, "hostname", text(name))
		return
	}
	put(p.at(yaml.MappingNode, "machine", "network"), "hostname", text(name))
}

func (p *patcher) time() {
	t := p.c.Time
	if len(t.NTPServers) == 0 && t.Enabled == nil {
		return
	}
	if doc := p.docs.kind("TimeSyncConfig"); doc != nil {
		if len(t.NTPServers) > 0 {
			put(p.in(doc, "ntp"), "servers", texts(t.NTPServers))
		}
		if t.Enabled != nil {
			put(doc, "enabled", boolean(*t.Enabled))
		}
		return
	}
	n := p.at(yaml.MappingNode, "machine", "time")
	if len(t.NTPServers) > 0 {
		put(n, "servers", texts(t.NTPServers))
	}
	if t.Enabled != nil {
		put(n, "disabled", boolean(!*t.Enabled))
	}
}

func (p *patcher) kernel() {
	k := p.c.Kernel
	if len(k.Sysctl) > 0 {
		n := p.at(yaml.MappingNode, "machine", "sysctls")
		for _, key := range slices.Sorted(maps.Keys(k.Sysctl)) {
			put(n, key, text(k.Sysctl[key]))
		}
	}
	if len(k.Modules) > 0 {
		n := p.at(yaml.SequenceNode, "machine", "kernel", "modules")
		for _, m := range k.Modules {
			if !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return scalar(lookup(c, "name")) == m }) {
				n.Content = append(n.Content, object("name", text(m)))
			}
		}
	}
	if len(k.Args)+len(k.RemoveArgs) == 0 {
		return
	}
	if scalar(lookup(p.docs.main, "machine", "install", "grubUseUKICmdline")) == "true" {
		f := p.r.Errorf("/kernel/args", "not-expressible", "the machine configuration takes its kernel arguments from the image")
		f.Hint = "set machine.install.grubUseUKICmdline: false in the document, or put the arguments into the image"
		return
	}
	n := p.at(yaml.SequenceNode, "machine", "install", "extraKernelArgs")
	for _, a := range k.RemoveArgs {
		n.Content = append(n.Content, text("-"+a))
	}
	for _, a := range k.Args {
		n.Content = append(n.Content, text(a))
	}
}

// install chooses the disk.
func (p *patcher) install() {
	d := p.c.Boot.RootDevice
	if d == (machineconfig.DeviceSelector{}) {
		return
	}
	n := p.at(yaml.MappingNode, "machine", "install")
	if d.Path != "" {
		drop(n, "diskSelector")
		put(n, "disk", text(d.Path))
		return
	}
	drop(n, "disk")
	s := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range []struct{ key, value string }{{"model", d.Model}, {"serial", d.Serial}, {"wwid", wwid(d.WWN)}} {
		if f.value != "" {
			put(s, f.key, text(f.value))
		}
	}
	switch {
	case d.MinGiB > 0 && d.MaxGiB > 0:
		p.r.Errorf("/boot/rootDevice", "not-expressible", "Talos takes a least or a greatest size of a disk, not both").Hint = "take one away"
	case d.MinGiB > 0:
		put(s, "size", text(fmt.Sprintf(">= %dGiB", d.MinGiB)))
	case d.MaxGiB > 0:
		put(s, "size", text(fmt.Sprintf("<= %dGiB", d.MaxGiB)))
	}
	if d.Rotational != nil && *d.Rotational {
		put(s, "type", text("hdd"))
	}
	if d.Rotational != nil && !*d.Rotational {
		f := p.r.Errorf("/boot/rootDevice", "not-expressible", "Talos has no word for every disk that does not turn")
		f.Hint = "name the disk by path, serial, model or size"
	}
	put(n, "diskSelector", s)
}

// wwid spells a WWN as the kernel's wwid attribute does.
func wwid(wwn string) string {
	if hex, ok := strings.CutPrefix(strings.ToLower(wwn), "0x"); ok {
		return "naa." + hex
	}
	return wwn
}

// files are written at every boot, under /var only.
func (p *patcher) files() {
	for _, f := range p.c.Files {
		at := pointer.Add("/files", f.Path)
		content, ok := f.Text, true
		if f.Base64 != "" {
			b, err := base64.StdEncoding.DecodeString(f.Base64)
			content, ok = string(b), err == nil && utf8.Valid(b)
		}
		if f.Secret != "" {
			content = late.Marker(f.Secret)
		}
		isAllowed := strings.HasPrefix(path.Clean(f.Path), "/var/") || f.Path == "/etc/cri/conf.d/20-customization.part"
		switch {
		case !isAllowed:
			p.r.Errorf(at, "not-expressible", "Talos writes files under /var only").Hint = "move it there, or put it into the image"
			continue
		case !ok:
			p.r.Errorf(at, "not-expressible", "Talos writes text only").Hint = "put it into a container image"
			continue
		case f.Owner != "" && f.Owner != "root" || f.Group != "" && f.Group != "root":
			p.r.Errorf(at, "not-expressible", "Talos gives files to root only").Hint = "take owner and group away"
			continue
		}
		op := "create"
		if f.Append {
			op = "append"
		}
		n := p.at(yaml.SequenceNode, "machine", "files")
		item := object(
			"content", text(content),
			"permissions", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprintf("0o%o", uint32(f.Mode.Or(0o644)))},
			"path", text(f.Path), "op", text(op),
		)
		i := slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return !f.Append && scalar(lookup(c, "path")) == f.Path })
		if i >= 0 {
			n.Content[i] = item
		} else {
			n.Content = append(n.Content, item)
		}
	}
}

// node says what the kubelet registers.
func (p *patcher) node() {
	s := p.c.Bootstrap
	if s == nil {
		return
	}
	if len(s.Labels) > 0 {
		n := p.at(yaml.MappingNode, "machine", "nodeLabels")
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			put(n, k, text(s.Labels[k]))
		}
	}
	for _, t := range s.Taints {
		put(p.at(yaml.MappingNode, "machine", "nodeTaints"), t.Key, text(strings.TrimPrefix(t.Value+":"+t.Effect, ":")))
	}
	args := maps.Clone(s.KubeletArgs)
	if s.ProviderID != "" {
		if args == nil {
			args = map[string]string{}
		}
		args["provider-id"] = s.ProviderID
	}
	for _, k := range slices.Sorted(maps.Keys(args)) {
		put(p.at(yaml.MappingNode, "machine", "kubelet", "extraArgs"), k, text(args[k]))
	}
	if s.NodeIP == "" {
		return
	}
	var subnets []string
	for _, ip := range strings.Split(s.NodeIP, ",") {
		a, err := netip.ParseAddr(ip)
		if err != nil {
			p.r.Errorf("/bootstrap/nodeIP", "invalid", "%q is not an address", ip)
			continue
		}
		subnets = append(subnets, netip.PrefixFrom(a, a.BitLen()).String())
	}
	put(p.at(yaml.MappingNode, "machine", "kubelet", "nodeIP"), "validSubnets", texts(subnets))
}

// addTrust adds a document for each authority that is not there yet.
func addTrust(d *documents, cas []string) {
	for i, ca := range cas {
		d.all = append(d.all, object(
			"apiVersion", text("v1alpha1"), "kind", text("TrustedRootsConfig"),
			"name", text("slipway-"+strconv.Itoa(i)), "certificates", text(ca),
		))
	}
}

func boolean(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(b)}
}

func integer(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)}
}

// object is a map of keys and values that follow each other.
func object(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i < len(pairs); i += 2 {
		put(n, pairs[i].(string), pairs[i+1].(*yaml.Node))
	}
	return n
}
