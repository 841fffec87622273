// Package convert reads objects of other machine APIs (the Machines API of cluster.k8s.io, Metal3, Sidero, Tinkerbell)
// and writes what they mean in our kinds. It applies nothing: a person reads the result first. Three rules hold:
//   - Every leaf of an object is carried into the output, or named in its notes. A leaf counts as left until the line of
//     code that writes it marks it as carried.
//   - No secret is printed. Values pass the tests of public.go; of all others the notes say the path only.
//   - Nothing that runs is endangered. A host is free only if its status proves that nothing runs on it, and a term that
//     we cannot say matches no host.
//
// Start reading at Converter.Convert; each API has a file. tree.go says how leaves are marked.
package convert

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Result is what became of the objects of all files.
type Result struct {
	Objects []Object
	Unknown []string // objects of kinds that nothing is made from: kind, name and line
	Broken  []string // what could not be read: file, line and reason
}

// Object is one object of ours, with where it came from and what it does not say.
type Object struct {
	Source  string // kind and name of the old object, and its line
	Notes   []string
	Object  runtime.Object // nil when only the notes are left
	Carried []string       // paths of the leaves that are in Object, or in those that follow for the same source
	Left    []string       // paths of all other leaves: the notes name them
}

// rules returns what becomes of the objects of each kind, by group and kind.
func (c *Converter) rules() map[string]rule {
	return map[string]rule{
		"cluster.k8s.io/Cluster":           {kind: v1alpha1.KindJoinTarget, convert: c.oldCluster},
		"cluster.k8s.io/Machine":           {kind: v1alpha1.KindMetalMachine, convert: c.oldMachine},
		"cluster.k8s.io/MachineSet":        {kind: v1alpha1.KindMetalMachine, isMany: true, convert: c.oldSet},
		"cluster.k8s.io/MachineDeployment": {kind: v1alpha1.KindMetalMachine, isMany: true, convert: c.oldSet},
		"cluster.k8s.io/MachineClass":      {convert: c.oldClass},
		"metal3.io/BareMetalHost":          {kind: v1alpha1.KindMetalHost, isCluster: true, convert: c.bareMetalHost},
		"metal.sidero.dev/Server":          {kind: v1alpha1.KindMetalHost, isCluster: true, convert: c.sideroServer},
		"metal.sidero.dev/ServerClass":     {kind: v1alpha1.KindMetalPool, isCluster: true, convert: c.sideroClass},
		"tinkerbell.org/Hardware":          {kind: v1alpha1.KindMetalHost, isCluster: true, convert: c.hardware},
		"bmc.tinkerbell.org/Machine":       {convert: c.tinkerbellMachine},
	}
}

// Convert converts everything that was read. The result holds what could be; the error says what could not.
func (c *Converter) Convert() (*Result, error) {
	rules, twins := c.rules(), map[string]*source{}
	for _, s := range c.sources {
		s.rule = rules[s.group()+"/"+s.kind]
		key := s.group() + "/" + s.kind + "\x00" + s.namespace + "\x00" + s.name
		if first := twins[key]; first != nil && s.name != "" && s.rule.convert != nil {
			s.twin, first.isTwice = first, true
			continue
		}
		twins[key] = s
		if s.group() == "bmc.tinkerbell.org" && s.kind == "Machine" {
			c.bmcs[s.namespace+"/"+s.name] = s
		}
	}
	c.claims.find(c.sources)
	c.nameAll()
	r := &Result{Broken: c.broken}
	made := make([][]runtime.Object, len(c.sources))
	n := 0
	for i, s := range c.sources {
		if made[i] = c.one(s, twins); s.rule.convert == nil && !s.isList {
			r.Unknown = append(r.Unknown, s.title(len(c.files)))
		}
		if n += len(made[i]); n > maxObjects {
			return &Result{Broken: c.broken}, inventory.Errorf(inventory.Invalid, "the files ask for more than %d objects", maxObjects).WithHint("convert them in parts")
		}
	}
	c.tellApart(made)
	for i, s := range c.sources {
		if s.lender == nil || len(made[i]) == 0 {
			continue
		}
		s.lender.say("it is in spec.power of MetalHost %s", s.newName)
		for _, v := range s.borrowed {
			v.carry()
		}
	}
	for i, s := range c.sources {
		r.Objects = append(r.Objects, c.finish(s, made[i])...)
	}
	if len(r.Broken) > 0 {
		return r, inventory.Errorf(inventory.Invalid, "%s", strings.Join(r.Broken, "\n"))
	}
	return r, nil
}

// nameAll gives every source the name of what becomes of it.
func (c *Converter) nameAll() {
	wish := func(s *source) string {
		if h := s.root.at("spec", "hostname"); s.isSidero() && isHost(h.text()) {
			return h.text()
		}
		return s.name
	}
	// Anyone who names no pool means the one of that name: a class must not become it.
	c.names[v1alpha1.KindMetalPool+"\x00\x00"+inventory.DefaultPool] = true
	one := func(s *source) bool { return s.rule.kind != "" && !s.rule.isMany && s.twin == nil }
	for _, s := range c.sources { // names that stay as they are
		if w := wish(s); one(s) && w != "" && dnsName(w) == w && !c.names[s.rule.kind+"\x00"+s.target()+"\x00"+w] {
			s.newName = c.names.give(s.rule.kind, s.target(), w)
		}
	}
	for _, s := range c.sources {
		w := wish(s)
		switch generated := s.root.at("metadata", "generateName").text(); {
		case !one(s) || s.newName != "":
		case w != "" && s.rule.isCluster && s.namespace != "":
			s.newName = c.names.give(s.rule.kind, "", w, s.namespace+"-"+w)
		case w != "" && w != s.name:
			s.newName = c.names.give(s.rule.kind, s.target(), w, w+"-"+s.name)
		case w != "":
			s.newName = c.names.give(s.rule.kind, s.target(), w, w+"-"+s.kind)
		case generated != "":
			s.newName = c.names.next(s.rule.kind, s.target(), generated)
			s.say("it has no name, and metadata.generateName asks for one: it is %s", s.newName)
		default:
			s.newName = c.names.next(s.rule.kind, s.target(), strings.ToLower(s.kind))
			s.say("it has no name: it is %s", s.newName)
		}
	}
	for _, s := range c.sources {
		if s.newName == "" {
			continue
		}
		m := s.root.at("metadata")
		m.at("generateName").carry()
		if w := wish(s); w == s.name || s.name == "" {
			m.at("name").carry()
		} else {
			s.root.at("spec", "hostname").carry()
		}
		if w := wish(s); w != "" && s.newName != w {
			s.say("its name is %s here: %s is taken, or is no name for it", s.newName, shown(w))
		}
		c.renamed[s.group()+"/"+s.kind+"\x00"+s.namespace+"\x00"+s.name] = s.newName
	}
}

// one converts one object, or says why nothing is made from it.
func (c *Converter) one(s *source, all map[string]*source) []runtime.Object {
	switch {
	case s.isList:
		return nil
	case s.rule.convert == nil:
		s.say("nothing of ours is made from this kind")
		return nil
	case s.twin != nil:
		s.say("line %d has an object of the same kind and name: that one is converted, and this one is left out", s.twin.line)
		return nil
	}
	if s.rule.kind == v1alpha1.KindMetalMachine {
		if s.root.at("metadata", "deletionTimestamp").says() {
			s.say("it is being deleted: no machine is made from it")
			return nil
		}
		for _, o := range s.root.at("metadata", "ownerReferences").list() {
			key := "cluster.k8s.io/" + o.at("kind").text() + "\x00" + s.namespace + "\x00" + o.at("name").text()
			if owner := all[key]; owner != nil && owner.rule.isMany {
				s.say("it was made by %s: that one's machines are in the output, and this one is not made a second time", owner.title(len(c.files)))
				return nil
			}
		}
	}
	return s.rule.convert(s)
}

// finish adds to the notes of an object which of its leaves were not carried.
func (c *Converter) finish(s *source, made []runtime.Object) []Object {
	slices.Sort(s.notes)
	o := Object{Source: s.title(len(c.files)), Notes: slices.Compact(s.notes)}
	var left []*value
	for _, l := range s.root.leaves() {
		if l.isCarried && (len(made) > 0 || l.path == "apiVersion" || l.path == "kind" || s.rule.kind == "") {
			o.Carried = append(o.Carried, l.path)
			continue
		}
		o.Left = append(o.Left, l.path)
		left = append(left, l)
	}
	if s.isList && len(left) == 0 {
		return nil
	}
	if text := named(left); text != "" {
		o.Notes = append(o.Notes, "not carried: "+text)
	}
	out := []Object{o}
	if len(made) == 1 && !s.rule.isMany {
		out[0].Object = made[0]
		return out
	}
	for i, m := range made {
		out = append(out, Object{Source: fmt.Sprintf("%s, machine %d of %d", o.Source, i+1, len(made)), Object: m})
	}
	return out
}

// named lists the paths of leaves. What a cluster writes down for itself is many leaves: its parts are counted.
func named(left []*value) string {
	var out []string
	count := map[string]int{}
	for _, l := range left {
		path := l.path
		if strings.HasPrefix(path, "metadata.managedFields") {
			path = "metadata.managedFields"
		} else if rest, ok := strings.CutPrefix(path, "status."); ok {
			path = "status." + rest[:len(rest)-len(strings.TrimLeft(rest, letters))]
		}
		if count[path]++; count[path] == 1 {
			out = append(out, path)
		}
	}
	for i, path := range out {
		if n := count[path]; n > 1 {
			out[i] = fmt.Sprintf("%s (%d values)", path, n)
		}
	}
	return strings.Join(out, ", ")
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
