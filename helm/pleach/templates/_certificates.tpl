{{/* The pod that makes certificates and tokens; with "optional" it may find no authority, and makes one. */}}
{{- define "pleach.certificates" -}}
{{- $full := include "pleach.fullname" . -}}
metadata:
  labels:
    {{- include "pleach.labels" . | nindent 4 }}
    app.kubernetes.io/component: certificates
spec:
  {{- include "pleach.pullSecrets" . | nindent 2 }}
  restartPolicy: OnFailure
  serviceAccountName: {{ $full }}-certificates
  automountServiceAccountToken: true
  enableServiceLinks: false
  securityContext: {{- include "pleach.podSecurity" . | nindent 4 }}
  {{- include "pleach.placement" .Values.manager | nindent 2 }}
  containers:
    - name: certificates
      image: {{ include "pleach.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [/bin/sh, -euc]
      args:
        - |
          {{- include "pleach.certificates.script" . | nindent 10 }}
      env:
        - {name: NAME, value: {{ $full }}}
        - {name: LABELS, value: {{ include "pleach.selector" . | fromYaml | toJson | squote }}}
        - {name: TOKEN_DAYS, value: {{ .Values.authority.joinToken.days | quote }}}
        - {name: CLIENT_DAYS, value: {{ .Values.authority.clientDays | quote }}}
        - {name: AUTHORITY, value: /run/pleach/authority}
        - {name: WORK, value: /run/pleach/work}
        - {name: ACCOUNT, value: /var/run/secrets/kubernetes.io/serviceaccount}
        - {name: API, value: "https://kubernetes.default.svc"}
        - name: NAMESPACE
          valueFrom:
            fieldRef: {fieldPath: metadata.namespace}
      securityContext: {{- include "pleach.containerSecurity" . | nindent 8 }}
      resources:
        requests: {cpu: 50m, memory: 64Mi}
        limits: {cpu: "1", memory: 256Mi}
      volumeMounts:
        - {name: authority, mountPath: /run/pleach/authority, readOnly: true}
        - {name: work, mountPath: /run/pleach/work}
  volumes:
    - name: work
      emptyDir: {medium: Memory, sizeLimit: 4Mi}
    {{- include "pleach.volume.authority" . | nindent 4 }}
{{- end }}

{{/* For a shell that knows POSIX and nothing else. An authority that is there is never replaced: it is made, or making it
     fails. */}}
{{- define "pleach.certificates.script" -}}
umask 077
cd "$WORK"
rm -rf ca client
made=
if [ ! -s "$AUTHORITY/token-key" ]; then
  pleach certs init --dir ca
  made=yes
fi
mkdir -p ca
for file in ca.pem ca-key.pem token-key; do
  if [ -s "$AUTHORITY/$file" ]; then cp -f "$AUTHORITY/$file" "ca/$file"; fi
done
pleach certs issue --dir ca --name "$NAME-client" --role client --days "$CLIENT_DAYS" --out client
pleach certs token --dir ca --ttl "${TOKEN_DAYS}d" > token

printf 'Authorization: Bearer %s\n' "$(cat "$ACCOUNT/token")" > header
secrets="$API/api/v1/namespaces/$NAMESPACE/secrets"
manifest() { # NAME FILE...: a secret of these files
  printf '{"apiVersion":"v1","kind":"Secret","type":"Opaque","metadata":{"name":"%s","labels":%s},"data":{' "$1" "$LABELS"
  shift
  comma=
  for file; do
    printf '%s"%s":"%s"' "$comma" "${file##*/}" "$(base64 -w 0 "$file")"
    comma=,
  done
  printf '}}\n'
}
send() { # METHOD TYPE URL, what is in manifest.json
  if ! curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --max-time 30 --cacert "$ACCOUNT/ca.crt" \
    --request "$1" --header "Content-Type: $2" --header @header --data-binary @manifest.json --output answer "$3"; then
    cat answer >&2
    exit 1
  fi
}
apply() { # as manifest
  manifest "$@" > manifest.json
  send PATCH application/apply-patch+yaml "$secrets/$1?fieldManager=pleach-certificates&force=true"
}
if [ -n "$made" ]; then
  {{- if eq .Values.authority.source "cert-manager" }}
  manifest "$NAME-authority" ca/token-key > manifest.json
  {{- else }}
  manifest "$NAME-authority" ca/ca.pem ca/ca-key.pem ca/token-key > manifest.json
  {{- end }}
  send POST application/json "$secrets"
fi
cp ca/ca.pem client/ca.pem
apply "$NAME-ca" ca/ca.pem
apply "$NAME-join" token
apply "$NAME-client" client/ca.pem client/node.pem client/node-key.pem
{{- end }}
