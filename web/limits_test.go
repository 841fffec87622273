package web

import "time"

// The limits that people meet when they log in. They stand here once more than in package access: a change of one is to be
// meant, and is a change of docs/access.md too.
const (
	loginIdle     = 12 * time.Hour // a login that nobody uses has ended
	ticketFor     = 15 * time.Minute
	keyTicketFor  = 5 * time.Minute
	ssoFor        = 10 * time.Minute
	ssoAnswer     = 1 << 20 // bytes that an identity provider may answer
	failureBurst  = 20      // wrong tries from one address at once,
	passwordBurst = 10      // and for one user
	passwordEvery = 5 * time.Second

	loginCookie = "slipway-login"
	knownCookie = "slipway-known"
	ssoPath     = "/api/v1/logins/oidc"
)
