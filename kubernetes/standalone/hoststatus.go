package standalone

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// seenEvery is the least age of status.lastSeen before its change alone causes a write: each packet of a host changes
// the row.
const seenEvery = 5 * time.Minute

// phases are the states of hosts as objects call them.
var phases = map[inventory.State]v1alpha1.HostPhase{
	inventory.Discovered: v1alpha1.HostDiscovered, inventory.Inspecting: v1alpha1.HostInspecting, inventory.Available: v1alpha1.HostAvailable,
	inventory.Installing: v1alpha1.HostInstalling, inventory.Active: v1alpha1.HostActive, inventory.Releasing: v1alpha1.HostReleasing,
	inventory.Cleaning: v1alpha1.HostCleaning, inventory.Failed: v1alpha1.HostFailed,
}

// statusOf returns the status for the object of a host. problem is the refusal of the inventory, nil for none.
func statusOf(v *contract.HostView, mh *v1alpha1.MetalHost, problem error, clusterUID string, now time.Time) v1alpha1.MetalHostStatus {
	h, old := &v.Host, &mh.Status
	s := v1alpha1.MetalHostStatus{
		Phase: phases[h.State], Conditions: conditionsOf(v, problem, mh, now), ObservedGeneration: mh.Generation, InventoryRevision: h.Version,
		Power: v1alpha1.PowerUnknown, BootMAC: bootMAC(h), Claim: claimOf(v, clusterUID), Hardware: hardwareOf(h, v.Inspection), LastSeen: old.LastSeen,
	}
	if h.IsAdopted {
		s.Adopted = &h.IsAdopted
	}
	if v.BMC != nil {
		switch v.BMC.Power {
		case inventory.PowerOn:
			s.Power = v1alpha1.PowerOn
		case inventory.PowerOff:
			s.Power = v1alpha1.PowerOff
		}
	}
	// The bounds here are those of the definition. With one value more, the API server would refuse the whole status.
	for _, a := range v.Addresses[:min(len(v.Addresses), 64)] {
		s.Addresses = append(s.Addresses, v1alpha1.Address{Type: v1alpha1.AddressInternalIP, Address: a})
	}
	if !h.LastSeenAt.IsZero() && (old.LastSeen == nil || h.LastSeenAt.Sub(old.LastSeen.Time) >= seenEvery) {
		seen := metav1.NewTime(h.LastSeenAt.Truncate(time.Second))
		s.LastSeen = &seen
	}
	if s.LastSeen.Equal(old.LastSeen) { // the row changes with every packet: that alone is nothing to tell
		s.InventoryRevision = old.InventoryRevision
		if !equality.Semantic.DeepEqual(&s, old) {
			s.InventoryRevision = h.Version
		}
	}
	return s
}

// undeclared returns the status of an object that could not become a host.
func undeclared(mh *v1alpha1.MetalHost, err error, now time.Time) v1alpha1.MetalHostStatus {
	s := *mh.Status.DeepCopy()
	s.ObservedGeneration = mh.Generation
	setCondition(&s.Conditions, mh.Generation, now, v1alpha1.Ready, metav1.ConditionFalse, string(v1alpha1.FailureInvalidConfiguration),
		controllers.Explain(err))
	return s
}

func setCondition(all *[]metav1.Condition, generation int64, now time.Time, kind string, is metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(all, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: inventory.Clean(message, 1024), ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

// conditionsOf returns the conditions of a host. No message holds a time or a number that changes by itself: each
// change is a write to etcd.
func conditionsOf(v *contract.HostView, problem error, mh *v1alpha1.MetalHost, now time.Time) []metav1.Condition {
	h := &v.Host
	all := slices.Clone(mh.Status.Conditions)
	say := func(kind string, is metav1.ConditionStatus, reason, message string) {
		setCondition(&all, mh.Generation, now, kind, is, reason, message)
	}
	yesNo := func(kind string, is bool, yes, no, message string) {
		if is {
			say(kind, metav1.ConditionTrue, yes, "")
		} else {
			say(kind, metav1.ConditionFalse, no, message)
		}
	}
	yesNo(v1alpha1.Accepted, h.State != inventory.Discovered, "Accepted", "NotAccepted", "set spec.accepted, or: slipway host accept "+h.Name)
	yesNo(v1alpha1.Inspected, v.Inspection != nil, "Inspected", "NotInspected", "its hardware is not known; slipway host inspect "+h.Name)
	switch b := v.BMC; {
	case b == nil:
		say(v1alpha1.PowerReachable, metav1.ConditionUnknown, "NoController", "nobody has said how it is powered; set spec.power")
	case b.IsReachable:
		say(v1alpha1.PowerReachable, metav1.ConditionTrue, "Reachable", "")
	default:
		say(v1alpha1.PowerReachable, metav1.ConditionFalse, "NotReachable", b.Reason)
	}
	switch {
	case !h.IsDirty:
		say(v1alpha1.Clean, metav1.ConditionTrue, "Clean", "")
	case h.ClaimID != "" || h.State == inventory.Active || h.State == inventory.Installing:
		say(v1alpha1.Clean, metav1.ConditionFalse, "InUse", "")
	default:
		say(v1alpha1.Clean, metav1.ConditionFalse, "Dirty", "something was installed on it since it was last wiped")
	}
	// The first obstacle is enough for people. They remove it, and the next one shows.
	reason, message := unavailable(h)
	yesNo(v1alpha1.Available, reason == "", v1alpha1.ReasonAvailable, reason, message)
	online, why := onlineOf(v)
	say(v1alpha1.Online, online, why, "")
	if h.InMaintenance {
		text := "nothing is started on it"
		if m := mh.Spec.Maintenance; m != nil {
			if text = m.Reason; m.Until != nil {
				text += " (until " + m.Until.UTC().Format(time.RFC3339) + ")"
			}
		}
		say(v1alpha1.Maintenance, metav1.ConditionTrue, "Maintenance", text)
	} else {
		say(v1alpha1.Maintenance, metav1.ConditionFalse, "NoMaintenance", "")
	}
	action := manual(v)
	if action != "" {
		say(v1alpha1.ManualActionRequired, metav1.ConditionTrue, "ManualActionRequired", action)
	} else {
		say(v1alpha1.ManualActionRequired, metav1.ConditionFalse, "NoAction", "")
	}
	switch {
	case problem != nil:
		say(v1alpha1.Ready, metav1.ConditionFalse, string(v1alpha1.FailureInvalidConfiguration), controllers.Explain(problem))
	case h.State == inventory.Discovered:
		say(v1alpha1.Ready, metav1.ConditionFalse, "NotAccepted", "nobody has accepted it")
	case h.State == inventory.Failed:
		say(v1alpha1.Ready, metav1.ConditionFalse, "Failed", h.StateReason)
	case action != "":
		say(v1alpha1.Ready, metav1.ConditionFalse, "ManualActionRequired", action)
	default:
		say(v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	}
	return all
}

// unavailable returns why no machine may have a host; reason is "" when a machine may.
func unavailable(h *inventory.Host) (reason, message string) {
	switch {
	case h.State == inventory.Discovered:
		return "NotAccepted", ""
	case h.ClaimID != "":
		if h.Machine == "" {
			return "Claimed", "a machine of another cluster has it"
		}
		return "Claimed", "machine " + h.Machine + " has it"
	case h.State != inventory.Available:
		return string(phases[h.State]), h.StateReason
	case h.InMaintenance:
		return "Maintenance", ""
	case h.IsCordoned:
		return "Cordoned", ""
	case h.IsProtected:
		return "Protected", ""
	case h.IsAdopted:
		return "Adopted", ""
	case h.IsDirty:
		return "Dirty", ""
	}
	return "", ""
}

// onlineOf returns whether a host runs: the controller knows best, and without one the last report counts.
func onlineOf(v *contract.HostView) (metav1.ConditionStatus, string) {
	switch {
	case v.BMC != nil && v.BMC.Power == inventory.PowerOff:
		return metav1.ConditionFalse, "PoweredOff"
	case v.BMC != nil && v.BMC.Power == inventory.PowerOn:
		return metav1.ConditionTrue, "PoweredOn"
	case v.Host.State == inventory.Active:
		return metav1.ConditionTrue, "ReportedUp"
	}
	return metav1.ConditionUnknown, "NotKnown"
}

// manual returns the first thing that a person has to do, by the key of the issue, or "". The order is stable, so
// that the status does not alternate.
func manual(v *contract.HostView) string {
	issues := slices.DeleteFunc(slices.Clone(v.Issues), func(i inventory.Issue) bool {
		return i.Type != inventory.IssueManual && i.Type != inventory.IssueFence
	})
	if len(issues) == 0 {
		return ""
	}
	slices.SortFunc(issues, func(a, b inventory.Issue) int { return cmp.Compare(a.Key, b.Key) })
	if issues[0].Hint == "" {
		return issues[0].Cause
	}
	return issues[0].Cause + "; " + issues[0].Hint
}

// bootMAC returns the MAC that a host boots from: the marked one, or that of its only port.
func bootMAC(h *inventory.Host) string {
	for _, n := range h.NICs {
		if n.IsBoot {
			return string(n.MAC)
		}
	}
	if len(h.NICs) == 1 {
		return string(h.NICs[0].MAC)
	}
	return ""
}

// claimOf names the holder of a host: an object of this or another cluster, or a machine of Slipway itself. It hides
// the id of a claim of another cluster.
func claimOf(v *contract.HostView, clusterUID string) *v1alpha1.HostClaim {
	if v.Host.ClaimID == "" {
		return nil
	}
	c := &v1alpha1.HostClaim{ID: string(v.Host.ClaimID), Kind: "Machine", Name: v.Host.Machine}
	if v.Host.ClaimID == contract.HiddenClaim {
		c.ID = ""
	}
	if v.Machine == nil {
		return c
	}
	if o, err := contract.ParseOwner(v.Machine.Owner); err == nil {
		c.Kind, c.Namespace, c.Name = o.Kind, o.Namespace, o.Name
		if o.ClusterUID != clusterUID {
			c.ClusterName = o.ClusterUID
		}
	}
	return c
}

// hardwareOf returns the hardware of a host from its last inspection, or else what the host reported when it booted.
func hardwareOf(h *inventory.Host, i *inventory.Inspection) *v1alpha1.Hardware {
	out := &v1alpha1.Hardware{
		System: v1alpha1.HostSystem{UUID: h.UUID, Manufacturer: h.Manufacturer, Product: h.Product, Serial: h.Serial},
		CPU:    v1alpha1.HostCPU{Architecture: architecture(h.Arch)},
	}
	switch h.Firmware {
	case inventory.BIOS:
		out.Firmware = v1alpha1.FirmwareBIOS
	case inventory.UEFI, inventory.UEFIHTTP:
		out.Firmware = v1alpha1.FirmwareUEFI
	}
	memory := int64(h.MemoryMiB) << 20
	if i != nil {
		// An inspection replaces what the host reported when it booted.
		hw := &i.Hardware
		memory = hw.MemoryBytes
		out.System = v1alpha1.HostSystem{
			UUID: clip(hw.System.UUID, 64), Manufacturer: clip(hw.System.Manufacturer, 256), Product: clip(hw.System.Product, 256),
			Serial: clip(hw.System.Serial, 256), BIOSVersion: clip(hw.Firmware.Version, 256),
		}
		out.CPU = v1alpha1.HostCPU{
			Architecture: architecture(hw.CPU.Arch), Model: clip(hw.CPU.Model, 256),
			Sockets: int32(hw.CPU.Sockets), Cores: int32(hw.CPU.Cores), Threads: int32(hw.CPU.Threads),
		}
		out.Disks, out.NICs, out.Accelerators = disksOf(hw.Disks), nicsOf(hw.Ports), acceleratorsOf(hw.Accelerators)
	}
	if memory > 0 {
		out.Memory = resource.NewQuantity(memory, resource.BinarySI)
	}
	if equality.Semantic.DeepEqual(*out, v1alpha1.Hardware{}) {
		return nil
	}
	return out
}

// clip cuts a text to the length that the definition allows. With a longer one the API server would refuse the status.
func clip(s string, n int) string { return s[:min(len(s), n)] }

// disksOf, nicsOf and acceleratorsOf list at most as many as the definition allows.
func disksOf(all []inventory.Disk) (out []v1alpha1.HostDisk) {
	for _, d := range all[:min(len(all), 64)] {
		o := v1alpha1.HostDisk{
			Name: clip(d.Name, 256), Model: clip(d.Model, 256), Serial: clip(d.Serial, 256), WWN: clip(d.WWN, 256), Transport: clip(d.Transport, 32),
			Rotational: &d.IsRotational,
		}
		if d.SizeBytes > 0 {
			o.Size = resource.NewQuantity(d.SizeBytes, resource.BinarySI)
		}
		out = append(out, o)
	}
	return out
}

func nicsOf(all []inventory.Port) (out []v1alpha1.HostNIC) {
	for _, p := range all[:min(len(all), 64)] {
		o := v1alpha1.HostNIC{Name: clip(p.Name, 64), MAC: string(p.MAC), SpeedMbps: int32(p.SpeedMbps), Link: &p.HasLink}
		if n := p.Neighbour; n != nil {
			o.Switch, o.SwitchPort = clip(cmp.Or(n.System, n.Chassis), 256), clip(n.Port, 256)
		}
		out = append(out, o)
	}
	return out
}

func acceleratorsOf(all []inventory.PCIDevice) (out []v1alpha1.HostAccelerator) {
	for _, d := range all[:min(len(all), 32)] {
		out = append(out, v1alpha1.HostAccelerator{Vendor: clip(cmp.Or(d.Vendor, "unknown"), 256), Model: clip(d.Model, 256), PCIID: clip(d.ID, 64)})
	}
	return out
}

// architecture returns the name that Kubernetes has for an architecture.
func architecture(a inventory.Arch) string {
	switch a {
	case inventory.X8664:
		return string(v1alpha1.AMD64)
	case inventory.ARM64:
		return string(v1alpha1.ARM64)
	}
	return string(a)
}
