package v1alpha1

import "strings"

// Conditions of MetalMachine, and of SlipwayMachine where they apply. True is good, but for Stalled and Paused.
const (
	Ready                  = "Ready"
	HostClaimed            = "HostClaimed"
	BootstrapDataAvailable = "BootstrapDataAvailable"
	OSInstalled            = "OSInstalled"
	ConfigDelivered        = "ConfigDelivered"
	NodeJoined             = "NodeJoined"
	NodeHealthy            = "NodeHealthy"
	Drained                = "Drained"
	UpToDate               = "UpToDate"
	Stalled                = "Stalled"
	Paused                 = "Paused"
)

// Conditions of MetalHost besides Ready. True is good, but for Maintenance and ManualActionRequired.
const (
	Accepted             = "Accepted"
	Inspected            = "Inspected"
	PowerReachable       = "PowerReachable"
	Clean                = "Clean"
	Available            = "Available"
	Online               = "Online"
	Maintenance          = "Maintenance"
	ManualActionRequired = "ManualActionRequired"
)

// Conditions of JoinTarget.
const (
	ControlPlaneInitialized = "ControlPlaneInitialized"
	Reachable               = "Reachable"
)

// Reasons of conditions. Under each name a condition has the same reason as long as nothing changes.
const (
	// HostClaimed.
	ReasonWaitingForHost           = "WaitingForHost"
	ReasonInsufficientResources    = "InsufficientResources"
	ReasonNoMatchInFailureDomain   = "NoMatchInFailureDomain"
	ReasonNoMatchingHost           = "NoMatchingHost" // free or in use
	ReasonPinnedHostUnavailable    = "PinnedHostUnavailable"
	ReasonClaimed                  = "Claimed"
	ReasonHostMissing              = "HostMissing"              // the row of its host is gone
	ReasonWaitingForInfrastructure = "WaitingForInfrastructure" // of the Cluster

	// BootstrapDataAvailable.
	ReasonWaitingForBootstrapData    = "WaitingForBootstrapData"
	ReasonWaitingForControlPlaneInit = "WaitingForControlPlaneInit"
	ReasonWaitingForTurn             = "WaitingForTurn" // other machines join first
	ReasonTokenMintFailed            = "TokenMintFailed"
	ReasonUnsupportedFormat          = "UnsupportedFormat"
	ReasonUnsupportedDirective       = "UnsupportedDirective"
	ReasonAvailable                  = "Available"

	// OSInstalled.
	ReasonWaitingForPower  = "WaitingForPower"
	ReasonWaitingForPXE    = "WaitingForPXE"
	ReasonDownloading      = "Downloading"
	ReasonWriting          = "Writing"
	ReasonInstallFailed    = "InstallFailed"
	ReasonBootTimeout      = "BootTimeout"
	ReasonInstalled        = "Installed"
	ReasonWaitingForHook   = "WaitingForHook"
	ReasonWaitingForBudget = "WaitingForBudget" // of the pool
	ReasonReprovisioning   = "Reprovisioning"

	// ConfigDelivered.
	ReasonWaitingForFirstBoot = "WaitingForFirstBoot"
	ReasonDelivered           = "Delivered"

	// NodeJoined, NodeHealthy.
	ReasonWaitingForNode             = "WaitingForNode"
	ReasonNodeProviderIDMismatch     = "NodeProviderIDMismatch"
	ReasonJoinFailed                 = "JoinFailed"
	ReasonWorkloadClusterUnreachable = "WorkloadClusterUnreachable"
	ReasonJoined                     = "Joined"
	ReasonNodeReady                  = "NodeReady"
	ReasonNodeNotReady               = "NodeNotReady"

	// Drained.
	ReasonDraining     = "Draining"
	ReasonBlockedByPDB = "BlockedByPDB"
	ReasonDrainTimeout = "DrainTimeout"
	ReasonDrained      = "Drained"
	ReasonDrainSkipped = "DrainSkipped"

	// UpToDate, Paused, Ready.
	ReasonSpecChanged = "SpecChanged"
	ReasonUpToDate    = "UpToDate"
	ReasonPaused      = "Paused"
	ReasonNotPaused   = "NotPaused"
	ReasonReady       = "Ready"
	ReasonDeleting    = "Deleting"

	// Stalled; True has one of FailureReason.
	ReasonNotStalled = "NotStalled"
)

// Labels of our objects and of nodes. Those of Facts stand on a MetalHost beside the user's.
const (
	Prefix = "metal.slipway.dev/"

	LabelHost          = Prefix + "host"
	LabelPool          = Prefix + "pool"
	LabelMachine       = Prefix + "machine"
	LabelFailureDomain = Prefix + "failure-domain"

	LabelSite   = Prefix + "site"
	LabelRow    = Prefix + "row"
	LabelRack   = Prefix + "rack"
	LabelUnit   = Prefix + "unit"
	LabelVendor = Prefix + "vendor"
	LabelModel  = Prefix + "model"
	LabelArch   = Prefix + "arch"
)

// Facts are the labels of a MetalHost that mirror its row; no other facts become labels.
func Facts() []string {
	return []string{LabelSite, LabelRow, LabelRack, LabelUnit, LabelVendor, LabelModel, LabelArch}
}

// Annotations of our objects.
const (
	AnnotationPaused        = Prefix + "paused"
	AnnotationReprovisionAt = Prefix + "reprovision-at" // RFC 3339
	AnnotationRebootAt      = Prefix + "reboot-at"      // RFC 3339
	AnnotationForceDelete   = Prefix + "force-delete"   // no drain, no fence, no wipe
	AnnotationHandOverTo    = Prefix + "hand-over-to"   // UID of the cluster whose objects may take the machine over
	AnnotationCascade       = Prefix + "cascade"        // of a JoinTarget: its machines go with it
)

// Cluster API's annotations that are honoured on MetalMachines as well.
const (
	CAPIPaused              = "cluster.x-k8s.io/paused"
	CAPIClonedFromName      = "cluster.x-k8s.io/cloned-from-name"
	CAPIClonedFromGroupKind = "cluster.x-k8s.io/cloned-from-groupkind"
)

// Finalizers.
const (
	FinalizerMachine        = Prefix + "metalmachine"
	FinalizerHost           = Prefix + "metalhost" // while it is claimed
	FinalizerPool           = Prefix + "metalpool"
	FinalizerTarget         = Prefix + "jointarget"
	FinalizerSlipwayMachine = Prefix + "slipwaymachine"
	FinalizerSlipwayCluster = Prefix + "slipwaycluster"
)

// ProviderIDScheme begins every provider id.
const ProviderIDScheme = "slipway://"

const hookInfix = ".hook." + Prefix

// HookAnnotation is the annotation that blocks a step for its owner: <step>.hook.metal.slipway.dev/<owner>.
func HookAnnotation(step, owner string) string { return step + hookInfix + owner }

// ParseHook reads the name of an annotation that blocks a step.
func ParseHook(annotation string) (step, owner string, ok bool) {
	step, owner, ok = strings.Cut(annotation, hookInfix)
	return step, owner, ok && step != "" && owner != ""
}
