package pxe

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
)

// maxCommandLine is what an x86 kernel reads of its command line (COMMAND_LINE_SIZE), less the final NUL.
const maxCommandLine = 2047

// VariableNames returns the names that an argument may use as ${name}, in addition to parameters and files.
func VariableNames() []string {
	return []string{"${base}", "${bootif}", "${hostname}", "${ip}", "${mac}", "${report}", "${server}", "${session}"}
}

// variables gives ${name} its value in one script.
type variables struct {
	in    ScriptInput
	image *inventory.Image
}

func (v variables) lookup(name string) (string, bool) {
	in := v.in
	switch name {
	case "base": // our boot server, without a slash at the end
		return cleanURL(strings.TrimRight(in.Base, "/")), true
	case "bootif": // the network card it booted from, as installers and initramfs-tools want it
		return "01-" + in.Client.MAC.Hyphens(), true
	case "hostname":
		return in.hostName(), true
	case "ip":
		return addrText(in.Client.Address), true
	case "mac":
		return string(in.Client.MAC), true
	case "report": // where the booted system says how far it is: append ?step=up
		return URL(in.Base, in.Session, "report"), true
	case "server":
		return addrText(in.Client.Server), true
	case "session": // our agent gets the key of this boot with it, and nothing else does
		if in.AgentKey != "" {
			return cleanURL(string(in.Session) + "/" + in.AgentKey), true
		}
		return cleanURL(string(in.Session)), true
	}
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		for _, f := range v.image.Files {
			if f.Name == file {
				return ArtefactURL(in.Base, in.Session, f), true
			}
		}
	}
	return "", false
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// arguments returns the kernel's arguments: the image's, then the profile's, with every ${name} replaced. A parameter's
// value may refer to the variables itself, but not to other parameters.
func (v variables) arguments(p *inventory.Profile) ([]string, error) {
	where := "image " + v.image.Name
	args := append([]string(nil), v.image.KernelArgs...)
	if c := v.in.Plan.Config; c != nil {
		for _, a := range v.image.ConfigArgs {
			if !c.HasInitrd || !strings.Contains(a, "${config}") {
				args = append(args, a)
			}
		}
		args = append(args, c.Args...)
	}
	parameters := map[string]string{}
	if p != nil {
		args = append(args, p.KernelArgs...)
		where = fmt.Sprintf("profile %s with image %s", p.Name, v.image.Name)
		for name, value := range p.Parameters {
			if _, taken := v.lookup(name); taken {
				return nil, inventory.Errorf(inventory.Invalid, "%s: ${%s} is built in and cannot be a parameter", where, name).
					WithHint("give the parameter another name")
			}
			value, err := expand(where+", parameter "+name, value, v.lookup)
			if err != nil {
				return nil, err
			}
			parameters[name] = value
		}
	}
	lookup := func(name string) (string, bool) {
		if c := v.in.Plan.Config; c != nil && name == "config" {
			return ConfigURL(cmp.Or(c.Base, v.in.Base), v.in.Session, "", c.Name), true
		}
		if value, ok := parameters[name]; ok {
			return value, true
		}
		return v.lookup(name)
	}
	var out []string
	size := 0
	for _, a := range args {
		a, err := expand(where, a, lookup)
		if err != nil {
			return nil, err
		}
		if err := checkWords(where, a); err != nil {
			return nil, err
		}
		size += len(a) + 1
		out = append(out, a)
	}
	if size > maxCommandLine {
		return nil, inventory.Errorf(inventory.Invalid, "%s: its arguments are %d bytes long; a kernel reads %d", where, size, maxCommandLine)
	}
	return out, nil
}

// CheckArgs checks, before an image or profile is saved, that a script made of it will be valid. The profile may be
// nil. The check assumes the longest addresses.
func CheckArgs(i *inventory.Image, p *inventory.Profile) error {
	longest := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	in := ScriptInput{
		Client:  Client{MAC: "52:54:00:ff:ff:ff", Address: longest, Server: longest},
		Host:    &inventory.Host{Name: strings.Repeat("n", 63)},
		Session: inventory.SessionID(strings.Repeat("f", 32)), Base: "http://255.255.255.255:65535",
	}
	if i.Name == inventory.AgentImage(i.Arch) {
		in.AgentKey = strings.Repeat("f", 32)
	}
	if _, err := (variables{in: in, image: i}).arguments(p); err != nil {
		return err
	}
	in.Plan.Config = &ConfigOffer{Name: "config.ign"}
	_, err := variables{in: in, image: i}.arguments(p)
	return err
}
