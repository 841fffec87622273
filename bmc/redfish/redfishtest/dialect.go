package redfishtest

// Dialect is how one vendor speaks. Each oddity is one that was reported; package redfish says where.
type Dialect struct {
	Name, Vendor, Product, OEM      string
	SystemID, ManagerID, ChassisID  string
	Manufacturer, Model             string // of the machine
	ControllerModel, Firmware       string
	ResetTypes                      []string
	HasActionInfo                   bool // reset types are in a document of their own
	Targets                         []string
	HasHTTPBootURI, HasBootOptions  bool
	Mode                            string // what the machine is set to, "" when it does not tell
	Tags                            string // weak, strong or "" for none
	RequiresMatch                   bool   // 428 for a PATCH without If-Match
	WantsStrongTags                 bool   // 412 for the weak tag that was given out
	RefusesMatchOnActions           bool   // 412 for an action with If-Match
	RequiresMode, ForgetsMode       bool   // an override without a mode is refused, or puts it back to Legacy
	RefusesMode, RefusesClearToNone bool
	RefusesOnceInUEFI               bool
	BootInSettings                  bool
	POSTs                           int // PATCHes of Boot that are refused after each start
	ConflictsWhenSame               bool
	IsTransitional                  bool   // tells PoweringOn and PoweringOff while an order is under way
	LED                             string // active, indicator or ""
	Drives                          []string
	DrivesInManager, MediaByPatch   bool
	ImageOnly, KeepsImage           bool
	AccountSlots                    int
	BadLoginIs400                   bool
	Log                             string // id of the event log
	LogInManager                    bool
	HasSensors                      bool // Sensors instead of Thermal and Power
	Expands                         bool
}

var (
	standardResets  = []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn", "PushPowerButton", "PowerCycle"}
	standardTargets = []string{"None", "Pxe", "Cd", "Hdd", "BiosSetup", "UefiTarget", "UefiHttp"}
)

// The dialects.
var (
	Standard = Dialect{
		Name: "standard", Vendor: "Contoso", Product: "Web Rack", SystemID: "437XR1138R2", ManagerID: "BMC", ChassisID: "1U",
		Manufacturer: "Contoso", Model: "3500RX", ControllerModel: "Joo Janta 200", Firmware: "4.4.6521",
		ResetTypes: standardResets, Targets: standardTargets, HasHTTPBootURI: true, Mode: "UEFI", Tags: "strong", LED: "active",
		Drives: []string{"Floppy1", "CD1"}, Log: "Log1", HasSensors: true, Expands: true,
	}
	IDRAC = Dialect{
		Name: "idrac", Vendor: "Dell", Product: "Integrated Dell Remote Access Controller", OEM: "Dell", SystemID: "System.Embedded.1",
		ManagerID: "iDRAC.Embedded.1", ChassisID: "System.Embedded.1", Manufacturer: "Dell Inc.", Model: "PowerEdge R660", ControllerModel: "16G Monolithic", Firmware: "7.10.30.05",
		ResetTypes: []string{"On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"},
		Targets:    []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"}, Mode: "UEFI", Tags: "weak",
		RefusesMatchOnActions: true, ConflictsWhenSame: true, LED: "indicator", Drives: []string{"RemovableDisk", "CD"}, DrivesInManager: true,
		AccountSlots: 16, Log: "Sel", LogInManager: true, Expands: true,
	}
	IDRAC8 = Dialect{
		Name: "idrac8", Product: "Integrated Dell Remote Access Controller", OEM: "Dell", SystemID: "System.Embedded.1",
		ManagerID: "iDRAC.Embedded.1", ChassisID: "System.Embedded.1", Manufacturer: "Dell Inc.", Model: "PowerEdge R730", ControllerModel: "13G Monolithic", Firmware: "2.83.83.83",
		ResetTypes: []string{"On", "ForceOff", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi"},
		Targets:    []string{"None", "Pxe", "Cd", "Hdd", "BiosSetup", "UefiTarget"}, HasBootOptions: true, Mode: "UEFI",
		RefusesOnceInUEFI: true, ConflictsWhenSame: true, LED: "indicator", Drives: []string{"CD"}, DrivesInManager: true,
		AccountSlots: 16, Log: "Sel", LogInManager: true,
	}
	ILO = Dialect{
		Name: "ilo", Vendor: "HPE", Product: "ProLiant DL360 Gen10", OEM: "Hpe", SystemID: "1", ManagerID: "1", ChassisID: "1",
		Manufacturer: "HPE", Model: "ProLiant DL360 Gen10", ControllerModel: "iLO 5", Firmware: "iLO 5 v2.72",
		ResetTypes: []string{"On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"},
		Targets:    []string{"None", "Cd", "Hdd", "Usb", "Pxe", "BiosSetup", "UefiTarget", "UefiHttp"}, Mode: "UEFI", Tags: "weak",
		RefusesMode: true, RefusesClearToNone: true, POSTs: 1, LED: "indicator", Drives: []string{"1", "2"}, DrivesInManager: true, BadLoginIs400: true,
		Log: "IML", Expands: true,
	}
	Supermicro = Dialect{
		Name: "supermicro", Vendor: "Supermicro", OEM: "Supermicro", SystemID: "1", ManagerID: "1", ChassisID: "1",
		Manufacturer: "Supermicro", Model: "SYS-621P", ControllerModel: "ASPEED", Firmware: "01.03.06",
		ResetTypes: []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn"}, HasActionInfo: true,
		Targets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UefiTarget", "UefiHttp"}, HasHTTPBootURI: true, Mode: "UEFI", Tags: "strong",
		RequiresMode: true, LED: "indicator", Drives: []string{"VirtualMedia1"}, DrivesInManager: true, ImageOnly: true, KeepsImage: true, Log: "Log1", LogInManager: true,
	}
	XCC = Dialect{
		Name: "xcc", Vendor: "Lenovo", Product: "ThinkSystem SR630 V2", OEM: "Lenovo", SystemID: "1", ManagerID: "1", ChassisID: "1",
		Manufacturer: "Lenovo", Model: "ThinkSystem SR630 V2", ControllerModel: "Lenovo XClarity Controller", Firmware: "AFBT20X 1.89",
		ResetTypes: []string{"On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart"},
		Targets:    []string{"None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget"}, Mode: "UEFI", Tags: "strong", RequiresMatch: true,
		LED: "active", Drives: []string{"RDOC1", "RDOC2", "EXT1", "EXT2", "Remote1"}, DrivesInManager: true, MediaByPatch: true, AccountSlots: 12, Log: "StandardLog",
	}
	OpenBMC = Dialect{
		Name: "openbmc", OEM: "OpenBMC", SystemID: "system", ManagerID: "bmc", ChassisID: "chassis", Manufacturer: "Quanta", Model: "S6Q", ControllerModel: "OpenBmc",
		Firmware: "2.15.0-dev", ResetTypes: standardResets, HasActionInfo: true, Targets: []string{"None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"}, Mode: "UEFI",
		Tags: "strong", IsTransitional: true, LED: "active", Drives: []string{"Slot_0"}, DrivesInManager: true, Log: "EventLog", HasSensors: true, Expands: true,
	}
	AMI = Dialect{
		Name: "ami", Vendor: "ASRockRack", Product: "AMI Redfish Server", OEM: "Ami", SystemID: "Self", ManagerID: "Self", ChassisID: "Self",
		Manufacturer: "ASRockRack", Model: "ROMED8-2T", ControllerModel: "MegaRAC", Firmware: "1.04.00",
		ResetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"}, Targets: standardTargets, HasHTTPBootURI: true, Mode: "UEFI",
		Tags: "weak", RequiresMatch: true, WantsStrongTags: true, BootInSettings: true, LED: "indicator", Drives: []string{"CD1"}, DrivesInManager: true, Log: "SEL", LogInManager: true,
	}
)

// Dialects returns all dialects.
func Dialects() []Dialect {
	return []Dialect{Standard, IDRAC, IDRAC8, ILO, Supermicro, XCC, OpenBMC, AMI}
}
