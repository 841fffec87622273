package pxe

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// How GRUB reads a script: like a shell. Between single quotes every character stands for itself, a single quote is
// written '\''. What is not quoted is ours. A command that fails prints its reason and the script goes on. Debian's
// network image has tftp, smbios, sleep and echo built in, and no HTTP; what it may load is bounded by its lockdown
// while Secure Boot is on, which it tells in ${lockdown}.

// grub is a script for GRUB being written.
type grub struct {
	strings.Builder
	in ScriptInput
}

func (g *grub) line(words ...string) {
	g.WriteString(strings.Join(words, " "))
	g.WriteByte('\n')
}

// say shows text on the machine's console.
func (g *grub) say(text string) {
	if text = consoleText(text); text != "" {
		g.line("echo", grubQuote("Slipway: "+text))
	}
}

// grubQuote makes one word of any printable text.
func grubQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// consoleText is text as every console shows it: ASCII on one line, at most 300 characters.
func consoleText(text string) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case r <= ' ' || r == 0x7f:
			return ' '
		case r > 0x7f:
			return '?'
		}
		return r
	}, text)), " ")
	return text[:min(len(text), 300)]
}

// file is a file of ours as GRUB names it. The address is left out where GRUB knows it: prefix names it already.
func (g *grub) file(path string) string { return grubQuote(grubRoot(g.in.Client.Server) + path) }

func grubRoot(server netip.Addr) string {
	if !server.IsValid() {
		return "(tftp)"
	}
	return "(tftp," + server.Unmap().WithZone("").String() + ")"
}

// GRUBScript is the grub.cfg for GRUB. It reports the machine to the server, runs the answer, and asks again where the
// answer requires it. An answer names other instances, in slipway_others: from then on it asks them in turn. After about a minute
// without an answer it exits, so that the firmware continues. After an answer to wait (slipway_waits) it goes on asking.
func GRUBScript(server netip.Addr) []byte {
	g := grub{in: ScriptInput{Client: Client{Server: server}}}
	g.line("# Slipway: asks what to boot")
	g.line("set slipway_uuid=; set slipway_serial=; set slipway_product=; set slipway_maker=")
	g.line("smbios --type 1 --get-uuid 8 --set slipway_uuid")
	g.line("smbios --type 1 --get-string 7 --set slipway_serial")
	g.line("smbios --type 1 --get-string 4 --set slipway_maker")
	g.line("smbios --type 1 --get-string 5 --set slipway_product")
	g.line("set slipway_go=y; set slipway_others=; set slipway_waits=")
	g.line(`while [ "$slipway_go" = y ]; do`)
	g.line("  for slipway_pause in 2 4 8 16 32 0; do")
	g.line("    set slipway_said=")
	g.line("    for slipway_server in", grubQuote(grubRoot(server)), "$slipway_others; do")
	g.line(`      source "$slipway_server/grub/ask?mac=$net_default_mac&cpu=$grub_cpu&platform=$grub_platform&lockdown=$lockdown` +
		`&uuid=$slipway_uuid&serial=$slipway_serial&manufacturer=$slipway_maker&product=$slipway_product"`)
	g.line(`      if [ -n "$slipway_said" ]; then break; fi`)
	g.line("    done")
	g.line(`    if [ -n "$slipway_said" ]; then break; fi`)
	g.line(`    if [ "$slipway_pause" = 0 ]; then`)
	g.line(`      if [ "$slipway_waits" = y ]; then break; fi`)
	g.line("      echo 'Slipway: the boot server does not answer; leaving the network boot'")
	g.line("      exit 1")
	g.line("    fi")
	g.line(`    echo "Slipway: no answer; asking again in $slipway_pause s"`)
	g.line("    sleep $slipway_pause")
	g.line("  done")
	g.line("done")
	g.line("exit 1")
	return []byte(g.String())
}

// grubScript writes a decision for GRUB, which the loop of GRUBScript runs: it asks again unless slipway_go says no.
func grubScript(in ScriptInput) ([]byte, error) {
	g := grub{in: in}
	g.line("set slipway_said=y; set slipway_waits=")
	g.others()
	switch in.Decision.Boot {
	case BootImage:
		if err := g.image(in.Plan.Image, in.Plan.Profile); err != nil {
			return nil, err
		}
	case BootAgent:
		g.in.Plan.Config = nil
		if err := g.image(in.Plan.Work.Agent, in.agentProfile()); err != nil {
			return nil, err
		}
	case BootMenu:
		g.menu()
	case BootWait:
		g.line("set slipway_waits=y")
		g.say(in.hostName() + " waits")
		g.why()
		g.wait(in.Decision.Again + jitter(in.Client.MAC))
	case BootPark:
		g.say(in.hostName() + " is parked")
		g.why()
		d := max(in.Decision.Again, time.Second)
		g.say(fmt.Sprintf("restarting in %d s", int(d/time.Second)))
		g.sleep(d)
		g.line("reboot")
	case BootDisk, BootIgnore:
		g.disk()
	default:
		return nil, fmt.Errorf("no GRUB script for the decision %q", in.Decision.Boot)
	}
	return []byte(g.String()), nil
}

// others names the instances that are asked when the one that answers now is gone.
func (g *grub) others() {
	var roots []string
	if ours := g.in.Client.Server; ours.IsValid() {
		for _, a := range Sources(g.in.of(), ours, g.in.Others) {
			if a != ours.Unmap().WithZone("") {
				roots = append(roots, grubRoot(a))
			}
		}
	}
	g.line("set slipway_others=" + grubQuote(strings.Join(roots, " ")))
}

func (g *grub) why() {
	g.say(g.in.Decision.Reason)
	g.say(g.in.Decision.Hint)
}

func (g *grub) sleep(d time.Duration) { g.line("sleep", fmt.Sprint(max(1, int(d/time.Second)))) }

func (g *grub) wait(d time.Duration) {
	d = max(d, time.Second)
	g.say(fmt.Sprintf("asking again in %d s", int(d/time.Second)))
	g.sleep(d)
}

// image boots the image: all of it comes by TFTP. What GRUB refuses, it says itself, and the server is told of it.
func (g *grub) image(i *inventory.Image, p *inventory.Profile) error {
	kernel, initrds, args, err := bootWords(g.in, i, p)
	if err != nil {
		return err
	}
	g.say(g.in.hostName() + " boots " + i.Name)
	g.why()
	at, indent, isShared := g.file, "", false
	if server := g.in.Client.Server; server.IsValid() && len(g.in.Others) > 0 {
		roots := []string{"for slipway_at in"}
		for _, a := range Sources(g.in.of(), server, g.in.Others) {
			roots = append(roots, grubQuote(grubRoot(a)))
		}
		// GRUB has no ||: the loop tries all files at one instance, and then all at the next.
		g.line(strings.Join(roots, " ") + "; do")
		at, indent, isShared = func(path string) string { return `"$slipway_at"` + grubQuote(path) }, "  ", true
	}
	words := []string{indent + "if linux", at(kernel)}
	for _, a := range args {
		for _, w := range strings.Fields(a) {
			if strings.ContainsAny(w, `'"\`) {
				return inventory.Errorf(inventory.Invalid, "image %s: GRUB cannot pass the argument %q", i.Name, inventory.Clean(w, 100)).
					WithHint("leave out quotes and backslashes")
			}
			words = append(words, grubQuote(w))
		}
	}
	g.line(strings.Join(words, " ") + "; then")
	if len(initrds) > 0 {
		words = []string{indent + "  if initrd"}
		for _, f := range initrds {
			if f == archiveFile(g.in.Session) { // secrets come from the instance that answers the machine
				words = append(words, g.file(f))
				continue
			}
			words = append(words, at(f))
		}
		g.line(strings.Join(words, " ") + "; then boot; fi")
	} else {
		g.line(indent + "  boot")
	}
	g.line(indent + "fi")
	if isShared {
		g.line("done")
	}
	g.say("could not load or start " + i.Name + "; the line above says why")
	g.report(ReportProgress, "GRUB could not load or start "+i.Name+"; with Secure Boot on, its kernel must be signed by "+trustedWords(g.in.Plan, g.in.Client.Arch))
	g.wait(AskAgain)
	return nil
}

func trustedWords(p Plan, a inventory.Arch) string {
	if all := authorities(Loaded{Has: p.Loaders, Trusts: p.Signatures.Trusts}, a); len(all) > 0 {
		return strings.Join(all, " or ")
	}
	return "an authority that the shim trusts"
}

// report tells the server how far the boot is. GRUB's own words it cannot tell: no variable holds them.
func (g *grub) report(step ReportStep, detail string) {
	if g.in.Session == "" {
		return
	}
	g.line("cat", g.file(reportFile(g.in.Session, step, detail)))
}

// disk hands over to the machine's own disk. `exit` alone would end in the firmware's menu on some machines, which take
// it for a boot that is over: so the disk's own loaders are tried first, those of distributions before the removable one.
// With Secure Boot, Debian's GRUB tells a loader that it was started from the device in root, whatever device its name has,
// and a shim looks for its second stage there.
func (g *grub) disk() {
	g.say(g.in.hostName() + " boots from its own disk")
	g.why()
	g.report(ReportDisk, "")
	end := "x64.efi"
	if g.in.Client.Arch == inventory.ARM64 {
		end = "aa64.efi"
	}
	g.line("for slipway_loader in /EFI/debian/shim" + end + " /EFI/ubuntu/shim" + end + " /EFI/rocky/shim" + end + " /EFI/almalinux/shim" + end +
		" /EFI/fedora/shim" + end + " /EFI/redhat/shim" + end + " /EFI/opensuse/shim.efi /EFI/Microsoft/Boot/bootmgfw.efi /EFI/BOOT/BOOT" +
		strings.ToUpper(strings.TrimSuffix(end, ".efi")) + ".EFI; do")
	g.line("  set slipway_disk=")
	g.line("  if search --no-floppy --set=slipway_disk --file $slipway_loader; then")
	g.line(`    if [ -n "$slipway_disk" ]; then set root=$slipway_disk; if chainloader $slipway_loader; then boot; fi; fi`)
	g.line("  fi")
	g.line("done")
	g.say("no loader is on its disks; leaving the network boot")
	g.line("exit 1")
}

// menu lets a person choose; each entry asks again with the choice. In its own context, so that it can be shown.
func (g *grub) menu() {
	g.line("set timeout_style=menu")
	g.line(fmt.Sprintf("set timeout=%d", int(g.in.Decision.Again/time.Second)))
	g.line("set default=0")
	for _, item := range menuItems(g.in) {
		g.line("menuentry " + grubQuote(consoleText(item.text)) + " {")
		if item.choice == ChoiceMemtest {
			g.line("  chainloader " + g.file("/memtest.efi"))
			g.line("  boot")
		} else {
			g.line("  source " + g.file(askFile(g.in.Client, item.choice)))
			g.line("  configfile " + g.file("/grub/grub.cfg"))
		}
		g.line("}")
	}
}

// menuCall is the answer that opens the menu.
func menuCall(in ScriptInput) []byte {
	g := grub{in: in}
	g.line("set slipway_said=y")
	g.line("configfile", g.file(askFile(in.Client, ChoiceMenu)))
	return []byte(g.String())
}
