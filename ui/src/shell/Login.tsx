import { ActionGroup, Button, Form, FormGroup, LoginPage, TextInput } from '@patternfly/react-core'
import { type FormEvent, useState } from 'react'
import { api, token } from '../api/client'
import { Failure } from '../parts/Failure'

export function Login({ entered }: { entered: () => void }) {
  const [secret, setSecret] = useState('')
  const [error, setError] = useState<unknown>()
  const enter = async (e: FormEvent) => {
    e.preventDefault()
    token.set(secret.trim())
    try {
      await api.GET('/api/v1/version')
      entered()
    } catch (err) {
      token.set('')
      setError(err)
    }
  }
  return (
    <LoginPage loginTitle="Log in to Slipway" loginSubtitle="With an API token: slipway token create NAME">
      <Form onSubmit={enter}>
        {error !== undefined && <Failure error={error} />}
        <FormGroup label="Token" fieldId="token" isRequired>
          <TextInput
            id="token"
            type="password"
            autoComplete="current-password"
            value={secret}
            onChange={(_, v) => setSecret(v)}
            isRequired
          />
        </FormGroup>
        <ActionGroup>
          <Button type="submit" isDisabled={secret.trim() === ''}>
            Log in
          </Button>
        </ActionGroup>
      </Form>
    </LoginPage>
  )
}
