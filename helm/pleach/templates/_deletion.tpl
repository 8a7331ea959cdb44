{{/* What the manager wants to go, told to the cluster. Whoever cannot be asked is asked again. */}}
{{- define "pleach.deletionCost" -}}
patch() { # POD COST
  curl --silent --show-error --fail --max-time 10 --output /dev/null --cacert "$ACCOUNT/ca.crt" \
    --header "Authorization: Bearer $(cat "$ACCOUNT/token")" --header 'Content-Type: application/merge-patch+json' \
    --request PATCH "$API/api/v1/namespaces/$NAMESPACE/pods/$1" \
    --data "{\"metadata\":{\"annotations\":{\"controller.kubernetes.io/pod-deletion-cost\":\"$2\"}}}"
}
trap 'exit 0' TERM
before=
while :; do
  if scaling=$(curl --silent --show-error --fail --max-time 10 --cacert "$CERTS/ca.pem" \
    --connect-to "manager.pleach:443:$ADDRESS" --header "Authorization: Bearer $(cat "$STATE/token")" \
    https://manager.pleach/api/v1/scaling); then
    # Names have letters, digits and hyphens.
    leave=$(printf '%s' "$scaling" | tr -d '\n' | sed -n 's/.*"leave" *: *\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr ',' ' ')
    cost=-100000
    for pod in $leave; do
      patch "$pod" "$cost"
      cost=$((cost + 1))
    done
    for pod in $before; do
      case " $leave " in *" $pod "*) ;; *) patch "$pod" 0 ;; esac
    done
    before=$leave
  fi
  sleep "$INTERVAL" &
  wait $!
done
{{- end }}
