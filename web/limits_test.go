package web

import "time"

// The limits that people meet. They stand here once more than in packages access and rest: whoever changes one there changes it
// here and in the docs too.
const (
	loginIdle     = 12 * time.Hour // a login that nobody uses has ended
	ticketFor     = 15 * time.Minute
	keyTicketFor  = 5 * time.Minute
	ssoFor        = 10 * time.Minute
	ssoAnswer     = 1 << 20 // bytes that an identity provider may answer
	failureBurst  = 20      // wrong tries from one address at once,
	passwordBurst = 10      // and for one user
	passwordEvery = 5 * time.Second

	refusedEvery   = time.Minute // one refusal for each actor is in the audit per minute,
	refusedBurst   = 200         // and so many at once;
	strangeBurst   = 20          // and so many at once of those who did not say who they are: from one address,
	strangersBurst = 500         // and from all

	loginCookie = "slipway-login"
	knownCookie = "slipway-known"
	ssoPath     = "/api/v1/logins/oidc"
)
