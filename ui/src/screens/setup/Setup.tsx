import { Button, ProgressStep, ProgressStepper } from '@patternfly/react-core'
import { useNavigate, useSearchParams } from 'react-router'
import { useMe } from '../../api/me'
import { usePage } from '../../api/page'
import { useList } from '../../api/queries'
import { useChecks } from '../../parts/Checks'
import { Screen } from '../../parts/Screen'
import { NetworkStep } from './NetworkStep'
import { AcceptStep, AccountStep, ImageStep, MachinesStep, ServerStep } from './Parts'
import { type Step, steps } from './steps'

const bodies: Record<Step, () => React.ReactNode> = {
  server: ServerStep,
  network: NetworkStep,
  account: AccountStep,
  image: ImageStep,
  accept: AcceptStep,
  machines: MachinesStep,
}

type Variant = 'success' | 'warning' | 'danger' | 'pending' | 'info'

// useDone says of each step how far it is; nothing is remembered, it is looked up.
function useDone(): Record<Step, Variant> {
  const me = useMe()
  const checks = useChecks()
  const subnets = useList('subnets')
  const images = useList('images')
  const rules = useList('acceptrules')
  const hosts = usePage('hosts', {}, 100)
  const worst = (checks.data ?? []).some((c) => c.status === 'error')
  const has = (is: boolean | undefined): Variant => (is ? 'success' : 'pending')
  const accepted = hosts.data?.items.some((h) => h.state !== 'discovered')
  return {
    server:
      checks.data === undefined
        ? 'pending'
        : worst
          ? 'danger'
          : checks.data.some((c) => c.status === 'warning')
            ? 'warning'
            : 'success',
    network: has((subnets.data ?? []).length > 0),
    account: has(me !== undefined && !me.needsSetup),
    image: has((images.data ?? []).length > 0),
    accept: has((rules.data ?? []).length > 0 || accepted),
    machines: has((hosts.data?.items ?? []).length > 0),
  }
}

// Setup goes from nothing to the first machine. Each step may be left out and come back to: it shows what is.
export function Setup() {
  const [params, setParams] = useSearchParams()
  const go = useNavigate()
  const done = useDone()
  const at = Math.max(
    0,
    steps.findIndex(([key]) => key === params.get('step')),
  )
  const [key, title] = steps[at] ?? steps[0]
  const show = (i: number) => setParams({ step: steps[i]?.[0] ?? 'server' })
  const Body = bodies[key]
  return (
    <Screen
      title="Set up Slipway"
      about="From the network to the first machine that boots. You can skip every step and do it later."
    >
      <ProgressStepper aria-label="Steps of the setup" className="setup-steps">
        {steps.map(([k, t], i) => (
          <ProgressStep
            key={k}
            id={`step-${k}`}
            titleId={`step-${k}-title`}
            variant={done[k]}
            isCurrent={i === at}
            aria-label={`${t}: ${done[k] === 'success' ? 'done' : done[k] === 'danger' ? 'has errors' : done[k] === 'warning' ? 'has warnings' : 'not done'}`}
          >
            <Button variant="link" isInline onClick={() => show(i)}>
              {t}
            </Button>
          </ProgressStep>
        ))}
      </ProgressStepper>
      <section aria-labelledby={`setup-${key}`} style={{ marginBlock: '1.5rem' }}>
        <h2 id={`setup-${key}`} className="pf-v6-c-title pf-m-xl">
          {title}
        </h2>
        <div style={{ marginBlockStart: '0.75rem', maxInlineSize: '60rem' }}>
          <Body />
        </div>
      </section>
      <Button
        variant="secondary"
        onClick={() => show(at - 1)}
        isDisabled={at === 0}
        style={{ marginInlineEnd: '0.5rem' }}
      >
        Back
      </Button>
      {at < steps.length - 1 ? (
        <Button onClick={() => show(at + 1)}>Next: {steps[at + 1]?.[1]}</Button>
      ) : (
        <Button onClick={() => go('/')}>To the overview</Button>
      )}
    </Screen>
  )
}
