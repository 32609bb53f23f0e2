(* Mutual exclusion of the lock files of src/releasekit/state/locks.py.

   The model is a file system in which a name leads to an inode or to nothing, and any number of
   processes that open (and create), flock, check, unlink, close, and die, one step of anybody at a
   time, in any order. Exclusion is nowhere assumed but for the one thing the kernel promises:
   flock on one inode is granted while nobody holds that inode.

   A process that dies loses its locks at once here. In truth they last until the children that
   inherited the descriptor are gone as well; that leaves fewer behaviours, so what is proved holds.
   `check` looks whether a lock is free by taking and dropping it: one more process. *)
From Coq Require Import Arith Lia.

(* What is done with the file of a lock that is given back. *)
Inductive policy :=
| Keep           (* nothing: what locks.py does *)
| UnlinkRecheck  (* unlinked while held, and who has got a lock looks whether the name still leads
                    to its inode: safe as well, but there is nothing to gain *)
| UnlinkNoCheck  (* the same without looking: shown unsafe below *)
| KeepPruned.    (* never unlinked by its holders, but somebody tidies away the files that nobody
                    holds: shown unsafe below *)

Inductive pc := Idle | Opened (i : nat) | Locked (i : nat) | Critical (i : nat) | Leaving (i : nat).

Record state := mk {
  name : option nat;          (* the inode that the name leads to *)
  fresh : nat;                (* the next inode *)
  owner : nat -> option nat;  (* who holds the flock of an inode *)
  at_ : nat -> pc             (* where each process is *)
}.

Definition upd {A} (f : nat -> A) k v := fun x => if Nat.eqb x k then v else f x.
Definition drop (o : nat -> option nat) (p : nat) := fun i =>
  match o i with
  | Some q => if Nat.eqb q p then None else Some q
  | None => None
  end.
Definition rechecks P := match P with UnlinkRecheck => True | _ => False end.
Definition unlinks P := match P with UnlinkRecheck | UnlinkNoCheck => True | _ => False end.

Inductive step (P : policy) : state -> state -> Prop :=
| s_open_old s p i : at_ s p = Idle -> name s = Some i ->
    step P s (mk (name s) (fresh s) (owner s) (upd (at_ s) p (Opened i)))
| s_open_new s p : at_ s p = Idle -> name s = None ->
    step P s (mk (Some (fresh s)) (S (fresh s)) (owner s) (upd (at_ s) p (Opened (fresh s))))
| s_flock s p i : at_ s p = Opened i -> owner s i = None ->
    step P s (mk (name s) (fresh s) (upd (owner s) i (Some p)) (upd (at_ s) p (Locked i)))
| s_give_up s p i : at_ s p = Opened i ->
    step P s (mk (name s) (fresh s) (owner s) (upd (at_ s) p Idle))
| s_enter s p i : at_ s p = Locked i -> (rechecks P -> name s = Some i) ->
    step P s (mk (name s) (fresh s) (owner s) (upd (at_ s) p (Critical i)))
| s_stale s p i : rechecks P -> at_ s p = Locked i -> name s <> Some i ->
    step P s (mk (name s) (fresh s) (drop (owner s) p) (upd (at_ s) p Idle))
| s_unlink s p i : unlinks P -> at_ s p = Critical i ->
    step P s (mk None (fresh s) (owner s) (upd (at_ s) p (Leaving i)))
| s_leave s p i : ~ unlinks P -> at_ s p = Critical i ->
    step P s (mk (name s) (fresh s) (owner s) (upd (at_ s) p (Leaving i)))
| s_unlock s p i : at_ s p = Leaving i ->
    step P s (mk (name s) (fresh s) (drop (owner s) p) (upd (at_ s) p Idle))
| s_prune s i : P = KeepPruned -> name s = Some i -> owner s i = None ->
    step P s (mk None (fresh s) (owner s) (at_ s))
| s_die s p :
    step P s (mk (name s) (fresh s) (drop (owner s) p) (upd (at_ s) p Idle)).

Definition init : state := mk None 0 (fun _ => None) (fun _ => Idle).

Inductive reach (P : policy) : state -> Prop :=
| r0 : reach P init
| rS s s' : reach P s -> step P s s' -> reach P s'.

Definition mutex (s : state) :=
  forall p q i j, at_ s p = Critical i -> at_ s q = Critical j -> p = q.

(* Lemmas on the functions above *)

Lemma drop_other o p i q : o i = Some q -> q <> p -> drop o p i = Some q.
Proof. intros H N. unfold drop. rewrite H. apply Nat.eqb_neq in N. now rewrite N. Qed.

Lemma upd_same {A} (f : nat -> A) k v : upd f k v k = v.
Proof. unfold upd. now rewrite Nat.eqb_refl. Qed.

Lemma upd_diff {A} (f : nat -> A) k v x : x <> k -> upd f k v x = f x.
Proof. intro N. unfold upd. apply Nat.eqb_neq in N. now rewrite N. Qed.

Ltac split_pid q p :=
  destruct (Nat.eq_dec q p) as [->|Hne];
  [ rewrite ?upd_same in * | rewrite ?(upd_diff _ p _ q Hne) in * ].

(* Whoever is past flock owns his inode, under every policy. *)

Definition holds (s : state) p i := at_ s p = Locked i \/ at_ s p = Critical i \/ at_ s p = Leaving i.
Definition owned s := forall p i, holds s p i -> owner s i = Some p.

Lemma owned_step P s s' : owned s -> step P s s' -> owned s'.
Proof.
  intros B H q j. unfold owned, holds in *.
  inversion H; subst; clear H; simpl; try (intro Hq; now apply B).
  all: split_pid q p; intros Hq.
  all: try (destruct Hq as [Hq|[Hq|Hq]]; discriminate).
  all: try (now apply B).
  all: try (apply drop_other; [now apply B | assumption]).
  - destruct Hq as [Hq|[Hq|Hq]]; inversion Hq; subst; now rewrite upd_same.
  - destruct (Nat.eq_dec j i) as [->|]; [apply B in Hq; congruence | rewrite upd_diff; auto].
  - destruct Hq as [Hq|[Hq|Hq]]; inversion Hq; subst; apply B; auto.
  - destruct Hq as [Hq|[Hq|Hq]]; inversion Hq; subst; apply B; auto.
  - destruct Hq as [Hq|[Hq|Hq]]; inversion Hq; subst; apply B; auto.
Qed.

(* Keep: everybody who has the file open has it open at the one inode there will ever be. *)

Definition inv_keep s :=
  (forall p i, at_ s p = Opened i \/ holds s p i -> name s = Some i) /\ owned s.

Lemma inv_keep_step s s' : inv_keep s -> step Keep s s' -> inv_keep s'.
Proof.
  intros [A B] H. split; [|now apply (owned_step Keep s)].
  intros q j. inversion H; subst; clear H; unfold holds in *; simpl in *;
    try tauto; try discriminate;
    split_pid q p; intros Hq;
    try (now apply (A q));
    try (repeat destruct Hq as [Hq|Hq]; try discriminate; inversion Hq; subst; auto;
         apply (A p); tauto).
  (* the file is made, so nobody had it open before *)
  assert (name s = Some j) by (apply (A q); tauto). congruence.
Qed.

Theorem keep_safe : forall s, reach Keep s -> mutex s.
Proof.
  intros s H. assert (inv_keep s) as [A B].
  { induction H.
    - split; unfold owned, holds; simpl; intros; intuition discriminate.
    - eauto using inv_keep_step. }
  intros p q i j Hp Hq.
  assert (name s = Some i) by (apply (A p); unfold holds; tauto).
  assert (name s = Some j) by (apply (A q); unfold holds; tauto).
  assert (owner s i = Some p) by (apply B; unfold holds; tauto).
  assert (owner s j = Some q) by (apply B; unfold holds; tauto). congruence.
Qed.

(* UnlinkRecheck: whoever is inside is at the inode that the name leads to now. *)

Definition inv_recheck s := (forall p i, at_ s p = Critical i -> name s = Some i) /\ owned s.

Lemma inv_recheck_step s s' : inv_recheck s -> step UnlinkRecheck s s' -> inv_recheck s'.
Proof.
  intros [A B] H. split; [|now apply (owned_step UnlinkRecheck s)].
  intros q j. inversion H; subst; clear H; simpl in *; try tauto; try discriminate;
    split_pid q p; intros Hq; try discriminate; try (now apply (A q)).
  - apply A in Hq. congruence.
  - inversion Hq; subst. match goal with H : True -> _ |- _ => exact (H I) end.
  - assert (name s = Some j) by now apply (A q). assert (name s = Some i) by now apply (A p).
    assert (owner s j = Some q) by (apply B; unfold holds; auto).
    assert (owner s i = Some p) by (apply B; unfold holds; auto). congruence.
Qed.

Theorem recheck_safe : forall s, reach UnlinkRecheck s -> mutex s.
Proof.
  intros s H. assert (inv_recheck s) as [A B].
  { induction H.
    - split; unfold owned, holds; simpl; intros; intuition discriminate.
    - eauto using inv_recheck_step. }
  intros p q i j Hp Hq.
  assert (name s = Some i) by eauto. assert (name s = Some j) by eauto.
  assert (owner s i = Some p) by (apply B; unfold holds; tauto).
  assert (owner s j = Some q) by (apply B; unfold holds; tauto). congruence.
Qed.

(* Any number of lock files: a step is at one of them; a death is at all of them at once. *)

Inductive steps P : (nat -> state) -> (nat -> state) -> Prop :=
| m_one S k s' : step P (S k) s' -> steps P S (upd S k s')
| m_die S p : steps P S (fun k =>
    mk (name (S k)) (fresh (S k)) (drop (owner (S k)) p) (upd (at_ (S k)) p Idle)).

Inductive reaches P : (nat -> state) -> Prop :=
| m0 : reaches P (fun _ => init)
| mS S S' : reaches P S -> steps P S S' -> reaches P S'.

Theorem keep_safe_for_every_file : forall S, reaches Keep S -> forall file, mutex (S file).
Proof.
  intros S H file. apply keep_safe. revert file. induction H; intro file; [constructor|].
  inversion H0; subst.
  - unfold upd. destruct (Nat.eqb_spec file k); subst; eauto. econstructor; eauto.
  - eapply rS; [apply IHreaches | apply s_die].
Qed.

(* The unsafe policies: a path of steps to two processes inside. *)

Definition open_new s p :=
  mk (Some (fresh s)) (S (fresh s)) (owner s) (upd (at_ s) p (Opened (fresh s))).
Definition open_old s p i := mk (name s) (fresh s) (owner s) (upd (at_ s) p (Opened i)).
Definition flock s p i := mk (name s) (fresh s) (upd (owner s) i (Some p)) (upd (at_ s) p (Locked i)).
Definition enter s p i := mk (name s) (fresh s) (owner s) (upd (at_ s) p (Critical i)).
Definition unlink s p i := mk None (fresh s) (owner s) (upd (at_ s) p (Leaving i)).
Definition unlock s p := mk (name s) (fresh s) (drop (owner s) p) (upd (at_ s) p Idle).
Definition prune s := mk None (fresh s) (owner s) (at_ s).

(* 0 works, 1 has opened the same file and waits; 0 unlinks and leaves, 1 gets the lock of a file
   without a name, 2 makes a new file and locks that. *)
Definition u1 := open_new init 0.
Definition u2 := open_old u1 1 0.
Definition u3 := flock u2 0 0.
Definition u4 := enter u3 0 0.
Definition u5 := unlink u4 0 0.
Definition u6 := unlock u5 0.
Definition u7 := flock u6 1 0.
Definition u8 := enter u7 1 0.
Definition u9 := open_new u8 2.
Definition ua := flock u9 2 1.
Definition ub := enter ua 2 1.

Theorem unlink_without_recheck_unsafe : reach UnlinkNoCheck ub /\ ~ mutex ub.
Proof.
  assert (reach UnlinkNoCheck u1) by (apply (rS _ init); [apply r0 | apply s_open_new; reflexivity]).
  assert (reach UnlinkNoCheck u2) by (apply (rS _ u1); [assumption | apply s_open_old; reflexivity]).
  assert (reach UnlinkNoCheck u3) by (apply (rS _ u2); [assumption | apply s_flock; reflexivity]).
  assert (reach UnlinkNoCheck u4)
    by (apply (rS _ u3); [assumption | apply s_enter; [reflexivity | simpl; tauto]]).
  assert (reach UnlinkNoCheck u5)
    by (apply (rS _ u4); [assumption | apply s_unlink; [exact I | reflexivity]]).
  assert (reach UnlinkNoCheck u6)
    by (apply (rS _ u5); [assumption | apply (s_unlock _ u5 0 0); reflexivity]).
  assert (reach UnlinkNoCheck u7) by (apply (rS _ u6); [assumption | apply s_flock; reflexivity]).
  assert (reach UnlinkNoCheck u8)
    by (apply (rS _ u7); [assumption | apply s_enter; [reflexivity | simpl; tauto]]).
  assert (reach UnlinkNoCheck u9) by (apply (rS _ u8); [assumption | apply s_open_new; reflexivity]).
  assert (reach UnlinkNoCheck ua) by (apply (rS _ u9); [assumption | apply s_flock; reflexivity]).
  assert (reach UnlinkNoCheck ub)
    by (apply (rS _ ua); [assumption | apply s_enter; [reflexivity | simpl; tauto]]).
  split; [assumption|].
  intro M. assert (1 = 2) by (apply (M 1 2 0 1); reflexivity). discriminate.
Qed.

(* 1 has opened the file and not locked it yet; it is tidied away; 2 makes a new one. *)
Definition d1 := open_new init 1.
Definition d2 := prune d1.
Definition d3 := flock d2 1 0.
Definition d4 := enter d3 1 0.
Definition d5 := open_new d4 2.
Definition d6 := flock d5 2 1.
Definition d7 := enter d6 2 1.

Theorem pruning_unsafe : reach KeepPruned d7 /\ ~ mutex d7.
Proof.
  assert (reach KeepPruned d1) by (apply (rS _ init); [apply r0 | apply s_open_new; reflexivity]).
  assert (reach KeepPruned d2)
    by (apply (rS _ d1); [assumption | apply (s_prune _ d1 0); reflexivity]).
  assert (reach KeepPruned d3) by (apply (rS _ d2); [assumption | apply s_flock; reflexivity]).
  assert (reach KeepPruned d4)
    by (apply (rS _ d3); [assumption | apply s_enter; [reflexivity | simpl; tauto]]).
  assert (reach KeepPruned d5) by (apply (rS _ d4); [assumption | apply s_open_new; reflexivity]).
  assert (reach KeepPruned d6) by (apply (rS _ d5); [assumption | apply s_flock; reflexivity]).
  assert (reach KeepPruned d7)
    by (apply (rS _ d6); [assumption | apply s_enter; [reflexivity | simpl; tauto]]).
  split; [assumption|].
  intro M. assert (1 = 2) by (apply (M 1 2 0 1); reflexivity). discriminate.
Qed.

Print Assumptions keep_safe_for_every_file.
Print Assumptions recheck_safe.
Print Assumptions unlink_without_recheck_unsafe.
Print Assumptions pruning_unsafe.
