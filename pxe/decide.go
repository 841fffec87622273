package pxe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// How long machines that are told to come back should take.
const (
	AskAgain  = 5 * time.Second // a waiting machine: what it waits for is a person
	ParkFor   = 5 * time.Minute // a parked machine, until it restarts
	identAged = 30 * 24 * time.Hour
)

// Decide returns what a machine boots, and why. h is nil for an unknown machine. The engine calls it with the facts of
// DHCP (c.Identity is nil), and again with the machine's report when it fetches its script. The second answer counts; the
// first only says whether the machine gets a loader at all.
//
// The first rule that applies wins. An operating system gets nothing. Then come maintenance and adoption, no acceptance,
// the running operation, and quarantine. Faults of the profile, protection, the arming of installers, and the machine's own
// lacks follow. A machine gets an image only if no rule before applies.
func Decide(c Client, h *inventory.Host, p Plan, now time.Time) Decision {
	if c.Stage == StageOS {
		return Decision{Boot: BootIgnore, Reason: "this is an operating system, not a network boot"}
	}
	a := asked{c: c, h: h, p: p, quirk: QuirkFor(p.Quirks, h, c.Firmware), isIdentified: isIdentified(h, now)}
	d := a.decide()
	d.Refs = a.refs(d)
	if c.Stage == StageFirmware {
		return a.withLoader(d)
	}
	return a.offerMenu(d)
}

// asked is one question to Decide.
type asked struct {
	c            Client
	h            *inventory.Host
	p            Plan
	quirk        Quirk
	isIdentified bool
}

// refs returns what the texts of a decision name besides the host: texts of the host and of the work may be parts of them.
func (a asked) refs(d Decision) []inventory.Ref {
	all := d.Refs
	if a.h != nil {
		all = slices.Concat(all, a.h.Refs)
	}
	if a.p.Work != nil {
		all = slices.Concat(all, a.p.Work.Refs)
	}
	return ref.In(d.Reason+" "+d.Hint, all...)
}

// isIdentified reports whether the host has told what it is, lately enough not to be asked again on its way to disk.
func isIdentified(h *inventory.Host, now time.Time) bool {
	return h != nil && !h.IdentifiedAt.IsZero() && now.Sub(h.IdentifiedAt) < identAged
}

func (a asked) decide() Decision {
	h := a.h
	switch {
	case h != nil && h.InMaintenance:
		return a.leave("in maintenance", "nothing is started on it until that ends")
	case h != nil && h.IsAdopted:
		return a.leave("adopted: its operating system is not ours", "")
	case h == nil || h.State == inventory.Discovered:
		return a.unaccepted()
	case a.p.Work != nil && a.p.Work.Boot != BootImage:
		return a.work()
	case h.State == inventory.Failed:
		reason := cmp.Or(h.StateReason, "it failed, and no reason was noted")
		return Decision{
			Boot: BootPark, Again: ParkFor, Reason: "quarantined: " + reason,
			Hint: "after the repair: slipway host release " + h.Name,
		}
	case !slices.Contains(inventory.States(), h.State):
		return Decision{
			Boot: BootWait, Again: AskAgain, IsTrap: true, Reason: fmt.Sprintf("its state %q is not known here", h.State),
			Hint: "the database is newer than this server; run the newer one",
		}
	}
	return a.accepted()
}

// work decides for a host that something is being done with, other than booting its profile's image.
func (a asked) work() Decision {
	w := a.p.Work
	d := Decision{Boot: w.Boot, Reason: w.Reason, Hint: w.Hint, Again: AskAgain}
	switch {
	case w.Boot == BootDisk:
		return a.leave(w.Reason, w.Hint)
	case w.Boot != BootAgent:
		return d
	case w.Agent == nil:
		d.Boot, d.IsTrap = BootWait, true
		d.Reason = w.Reason + ", and there is no agent image for " + string(a.arch())
		d.Hint = "make it with: slipway agent-image build"
		return d
	}
	if d, ok := a.lacking(w.Agent); ok {
		return d
	}
	return d
}

// arch is what the machine runs on, or is known to.
func (a asked) arch() inventory.Arch {
	if a.c.Arch != "" {
		return a.c.Arch
	}
	return a.h.Arch
}

// unaccepted decides for a machine that nobody has accepted: nothing of ours is ever started on it.
func (a asked) unaccepted() Decision {
	name := string(a.c.MAC)
	if a.h != nil {
		name = a.h.Name
	}
	reason, hint := "not accepted", "slipway host accept "+name
	switch a.p.Policy {
	case inventory.UnknownIgnore:
		if a.c.Subnet == "" { // never heard, or heard from an address of no subnet
			return Decision{Boot: BootIgnore, Reason: reason + ", and not heard in any subnet, whose policy says what such machines get", Hint: hint}
		}
		return Decision{Boot: BootIgnore, Reason: reason + ", and the subnet ignores such machines", Hint: hint}
	case inventory.UnknownWait:
		return Decision{Boot: BootWait, Again: AskAgain, Reason: reason, Hint: hint}
	}
	return a.disk(reason+": it boots from its own disk", hint)
}

// accepted decides for an accepted host that is not quarantined.
func (a asked) accepted() Decision {
	h, p := a.h, a.p
	if p.Problem != nil {
		return Decision{
			Boot: BootWait, Again: AskAgain, Reason: p.Problem.Msg, Hint: p.Problem.Hint, Refs: p.Problem.Refs,
			IsTrap: p.Problem.Kind != inventory.NotFound || h.Profile != "",
		}
	}
	if p.Image != nil && p.Image.IsDisk() {
		return a.written()
	}
	if p.Profile == nil || p.Image == nil {
		return Decision{
			Boot: BootWait, Again: AskAgain, Reason: "no profile matches this host",
			Hint: "pin one with: slipway host set " + h.Name + " --profile NAME",
		}
	}
	if p.Image.IsInstaller && h.IsProtected {
		return a.disk(fmt.Sprintf("protected: %s installs, and it may not", p.Image.Name), "lift that with: slipway host protect "+h.Name+" --off")
	}
	if p.Image.IsInstaller && !h.IsArmed {
		reason := fmt.Sprintf("%s installs, and this host is not armed for it", p.Image.Name)
		if h.State == inventory.Active {
			reason = "installed: it boots from its own disk"
		}
		return a.disk(reason, "to install it: slipway host install "+h.Name)
	}
	if d, ok := a.lacking(p.Image); ok {
		return d
	}
	return Decision{Boot: BootImage, Reason: fmt.Sprintf("profile %s gives it image %s", p.Profile.Name, p.Image.Name)}
}

// written decides for a host whose image is written to a disk by our agent, while nothing is being done with it.
func (a asked) written() Decision {
	if a.h.State == inventory.Active {
		return a.disk("installed: it boots from its own disk", "")
	}
	return Decision{
		Boot: BootWait, Again: AskAgain, Reason: fmt.Sprintf("%s is written to a disk, and nobody has asked for that", a.p.Image.Name),
		Hint: "slipway machine create NAME --profile " + a.p.Profile.Name + ", or: slipway host install " + a.h.Name,
	}
}

// lacking decides for a machine that cannot run an image.
func (a asked) lacking(i *inventory.Image) (Decision, bool) {
	arch := a.arch()
	isBIOS := a.firmware() == inventory.BIOS
	if fits := arch == "" || arch == i.Arch || isBIOS && arch == inventory.X8664 && i.Arch == inventory.I386; !fits {
		return Decision{
			Boot: BootWait, Again: AskAgain, IsTrap: true,
			Reason: fmt.Sprintf("image %s is for %s, and this machine is %s", i.Name, i.Arch, arch),
			Hint:   "give it a profile whose image is for " + string(arch),
		}, true
	}
	memory := a.h.MemoryMiB
	if a.c.Identity != nil && a.c.Identity.MemoryMiB > 0 {
		memory = a.c.Identity.MemoryMiB
	}
	if reason, hint := untrusted(a.question(i), i.Name); reason != "" && !isBIOS {
		return Decision{Boot: BootWait, Again: AskAgain, IsTrap: true, Reason: reason, Hint: hint}, true
	}
	if no := i.TooOld(a.h.Facts[inventory.FactCPULevel]); no != nil {
		return Decision{Boot: BootWait, Again: AskAgain, IsTrap: true, Reason: no.Msg, Hint: no.Hint}, true
	}
	// What firmware keeps for itself is missing from the figure: up to a sixteenth is forgiven.
	if memory > 0 && memory+memory/16 < i.MemoryMiB {
		return Decision{
			Boot: BootWait, Again: AskAgain, IsTrap: true,
			Reason: fmt.Sprintf("image %s needs %d MiB of memory, and this machine has %d", i.Name, i.MemoryMiB, memory),
			Hint:   "add memory, or give it a smaller image",
		}, true
	}
	return Decision{}, false
}

// firmware is what the machine runs, or ran last.
func (a asked) firmware() inventory.Firmware {
	if a.c.Firmware == "" && a.h != nil {
		return a.h.Firmware
	}
	return a.c.Firmware
}

// leave sends a machine to its disk without asking it first what it is.
func (a asked) leave(reason, hint string) Decision {
	a.isIdentified = true
	return a.disk(reason, hint)
}

// disk sends a machine to its own disk, in the way that its host, its quirk or else its firmware wants.
//
// UEFI gets a loader that ends at once: OVMF is at the disk's own loader after 21 s. Without any boot option EDK2 waits
// out the 60 s of every network entry before it tries the next one, and needs 200 s. BIOS goes on at once when DHCP
// names no boot file, so that only a machine that has not told what it is gets a script, and leaves it to its disk.
func (a asked) disk(reason, hint string) Decision {
	d := Decision{Boot: BootDisk, Reason: reason, Hint: hint, Disk: a.quirk.DiskBoot}
	if a.h != nil && a.h.DiskBoot != "" {
		d.Disk = a.h.DiskBoot
	}
	isBIOS := a.firmware() == inventory.BIOS
	inScript := a.c.Identity != nil || !a.isIdentified || hasMenu(a.h, a.p)
	switch {
	case d.Disk != "" && d.Disk != inventory.DiskNoOffer:
	case inScript && isBIOS:
		d.Disk = inventory.DiskSanboot
	case inScript || d.Disk == "" && !isBIOS:
		d.Disk = inventory.DiskExit
	default:
		d.Disk = inventory.DiskNoOffer
	}
	return d
}

// withLoader adds the boot file that firmware needs to get at the script of the decision. Without one the machine is
// left to itself, which is a fault unless that was the decision anyway.
func (a asked) withLoader(d Decision) Decision {
	if d.Boot == BootIgnore || d.Boot == BootDisk && d.Disk == inventory.DiskNoOffer {
		return d
	}
	has := func(name string) bool { return a.p.Loaders != nil && a.p.Loaders(name) }
	q := a.question(a.image(d))
	isRefused := q.SecureBoot == SecureBootOn && q.Firmware != inventory.BIOS && (q.Loaded.isUnsigned(a.quirk.Loader) || q.refuses(a.quirk.Loader)) // a quirk signs nothing
	if a.quirk.Loader != "" && has(a.quirk.Loader) && !isRefused {
		d.Loader, d.Chain = a.quirk.Loader, chainOf(a.quirk.Loader)
		return d
	}
	w := ChainFor(q)
	if w.Chain != "" {
		d.Loader, d.Chain = w.Loader, w.Chain
		return d
	}
	if d.Boot == BootDisk {
		d.Disk = inventory.DiskNoOffer
		return d
	}
	return Decision{
		Boot: BootIgnore, IsTrap: true, Hint: w.Hint,
		Reason: fmt.Sprintf("%s for %s; it would get: %s", w.Reason, a.c.machineWords(), d.Reason),
	}
}

// image is what a decision boots, nil when that is no image.
func (a asked) image(d Decision) *inventory.Image {
	switch d.Boot {
	case BootImage:
		return a.p.Image
	case BootAgent:
		return a.p.Work.Agent
	}
	return nil
}

// question is what the chain is chosen by, for an image or none.
func (a asked) question(i *inventory.Image) Question {
	sig := a.p.Signatures
	q := Question{
		Firmware: a.firmware(), Arch: a.c.Arch, IsHTTP: a.c.IsHTTP(), IsUBoot: a.c.IsUBoot(), SecureBoot: a.c.SecureBoot,
		Loaded: Loaded{Has: a.p.Loaders, IsSigned: sig.IsSigned, Trusts: sig.Trusts, Signers: sig.SignersOf},
	}
	if a.h != nil {
		q.SecureBoot = cmp.Or(q.SecureBoot, a.h.Facts[inventory.FactSecureBoot])
		q.DB = trustedNames(a.h)
		q.IsRefused = a.h.Facts[inventory.FactLoaderRefused] != ""
		q.Arch = cmp.Or(q.Arch, a.h.Arch)
	}
	if i != nil && sig.OfKernel != nil {
		for _, f := range i.Files {
			if f.Role == inventory.RoleKernel {
				q.Signers, q.IsRead = sig.OfKernel(f.Digest)
			}
		}
	}
	return q
}
